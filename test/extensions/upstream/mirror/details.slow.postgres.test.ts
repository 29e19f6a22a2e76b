/** A mirror that has read only the lists fetches the details of records when a request selects them. */

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createUpstream } from '../../../../src/extensions/upstream/client/upstream.ts';
import { identify } from '../../../../src/extensions/upstream/mirror/account.ts';
import type { FailedDetails } from '../../../../src/extensions/upstream/mirror/details.ts';
import { syncDetails } from '../../../../src/extensions/upstream/mirror/sync.ts';
import { graphqlOnce, graphqlOnEveryPath, rest, type TestGateway } from '../../../support/gateway.ts';
import { stillMirror } from '../support/mirrorService.ts';
import { behave, openScene, pathOf, reply, sessionCount, shortTiming } from '../support/upstream.ts';

let mirror: { gateway: TestGateway; token: string };

const scene = await openScene();
afterAll(() => scene.close());

/** Opens a mirror that has only the lists. */
async function renew(): Promise<void> {
  await scene.renew();
  await scene.syncOnce({ listsOnly: true });
  const { target } = scene;
  const upstream = createUpstream({
    base: scene.proxy.base,
    token: scene.sourceToken,
    timing: { ...shortTiming, timeout: 5_000, retries: 0 },
  });
  mirror = await scene.openMirror(stillMirror(target.pool, upstream));
  scene.proxy.requests.length = 0;
}

/** One step of a run, as a gateway for many accounts runs it. */
async function pullOnly(step: 'lists' | 'details', failed?: FailedDetails) {
  const { upstream, target } = scene;
  const options = { pool: target.pool, upstream };
  if (step === 'lists') return scene.sync({ listsOnly: true });
  const account = await identify(upstream);
  return syncDetails({ ...options, account, ...(failed && { failed }) });
}

const askSource = (query: string) => graphqlOnce(scene.source, scene.sourceToken, query);
const ask = (query: string) => graphqlOnce(mirror.gateway, mirror.token, query);
/** The requests for records by their ids. */
const fetched = () => scene.proxy.requests.filter((request) => /\/\d+$/.test(request));
const pending = () =>
  Promise.all([
    scene.target.client.dttTemplate.count({ where: { detailsPending: true } }),
    scene.target.client.dttSession.count({ where: { detailsPending: true } }),
  ]);

/** Queries that select details, with the records that have these. */
const detailed: [query: string, records: readonly string[]][] = [
  ['{ dttSession(databaseId: 7) { segments { repsMeasured } } }', ['/dtt/sessions/7']],
  ['{ latestDttSession { segments { type createdAt } } }', ['/dtt/sessions/1']],
  [
    '{ dttSessions(first: 2) { edges { cursor node { ...F } } } } fragment F on DttSession { segments { ... on TrainerSegment { strokeLength } } }',
    ['/dtt/sessions/1', '/dtt/sessions/2'],
  ],
  ['{ dttTemplate(databaseId: 1) { segments { databaseId } } }', ['/dtt/templates/1']],
  [
    '{ dttDevice(databaseId: 1) { sessions(first: 1, offset: 3) { nodes { databaseId segments { targetDepth } } } } }',
    ['/dtt/sessions/4'],
  ],
  ['{ dttSession(databaseId: 1) { template { segments { __typename } } } }', ['/dtt/templates/1']],
  [
    `{ node(id: "${globalId('DttSession', 9)}") { ... on DttSession { segments { speedTarget } } } }`,
    ['/dtt/sessions/9'],
  ],
  [
    `{ nodes(ids: ["${globalId('TrainerSegment', 1)}", "${globalId('TrainerSegment', 2)}"]) { ... on TrainerSegment { rawType repsTarget } } }`,
    ['/dtt/sessions/1'],
  ],
  [
    `{ node(id: "${globalId('DttTemplateSegment', 2)}") { ... on DttTemplateSegment { type template { name } } } }`,
    ['/dtt/templates/1', '/dtt/templates/2', '/dtt/templates/4', '/dtt/templates/5', '/dtt/templates/6'],
  ],
  [
    `{ node(id: "${globalId('TrainerSegment', 1)}") { ... on TrainerSegment { rawType session { segments { distanceTravelledMetres } } } } }`,
    ['/dtt/sessions/1'],
  ],
];

function globalId(typename: string, id: number): string {
  return Buffer.from(`${typename}:${id}`).toString('base64url');
}

/** Queries that select only what the lists have. */
const listed = [
  '{ dttSessions(first: 100) { nodes { name passed trainerId segments { databaseId rawType type passed gradePercent points session { name } } } } }',
  `{ node(id: "${globalId('TrainerSegment', 3)}") { ... on TrainerSegment { points session { name } } } }`,
  '{ dttTemplates { nodes { name description targetDepth isActive sessions { totalCount } } } }',
  '{ dttSession(databaseId: 7) { template { name } trainer { macAddress } } }',
  // Fields that a condition excludes are not fetched.
  'query ($no: Boolean = false) { dttSessions(first: 3) { nodes { segments { points repsMeasured @include(if: $no) } } } }',
  'query ($yes: Boolean = true) { dttSession(databaseId: 7) { name ...F @skip(if: $yes) } } fragment F on DttSession { segments { order } }',
  'query ($no: Boolean = false) { dttTemplates { nodes { name ... on DttTemplate @include(if: $no) { segments { type } } } } }',
];

describe('a read of a mirror that has only the lists', () => {
  beforeAll(renew);
  beforeEach(async () => {
    await scene.target.pool.query(`UPDATE "DttSession" SET "detailsPending" = true;
      UPDATE "DttTemplate" SET "detailsPending" = true`);
    scene.proxy.misbehave = behave;
    scene.proxy.requests.length = 0;
  });

  it.each(detailed)('fetches the details that it selects, once: %s', async (query, records) => {
    const { data, errors } = await ask(query);
    expect(errors).toBeUndefined();
    expect(data).toEqual((await askSource(query)).data);
    expect(fetched().sort()).toEqual(records.map((path) => `GET ${path}`));
    await graphqlOnEveryPath(mirror.gateway, mirror.token, query);
    expect(fetched()).toHaveLength(records.length);
  });

  it.each(listed)('sends no request upstream for what the lists have: %s', async (query) => {
    const { data, errors } = await ask(query);
    expect(errors).toBeUndefined();
    expect(data).toEqual((await askSource(query)).data);
    // A GET request takes another path through the code.
    const byGet = await fetch(`${mirror.gateway.url}/graphql?${new URLSearchParams({ query })}`, {
      headers: { Authorization: `Bearer ${mirror.token}` },
    });
    expect(await byGet.json()).toEqual({ data });
    expect(fetched()).toEqual([]);
  });

  it('sends no request upstream for a list of the REST API, and fetches the details of a record by its id', async () => {
    const expectSame = async (path: string) => {
      const { body } = await rest(mirror.gateway, mirror.token, path);
      expect(body).toEqual((await rest(scene.source, scene.sourceToken, path)).body);
    };
    for (const path of ['/dtt/sessions', '/dtt/sessions/latest', '/dtt/templates']) await expectSame(path);
    expect(fetched()).toEqual([]);
    for (const id of ['sessions/5', 'settings/2', 'templates/active']) await expectSame(`/dtt/${id}`);
    expect(fetched()).toEqual(['GET /dtt/sessions/5', 'GET /dtt/templates/2', 'GET /dtt/templates/1']);
  });

  it('fails where details cannot be fetched, says when to retry, and returns what the lists have', async () => {
    scene.proxy.misbehave = (request) => Boolean(request.socket.destroy());
    const { data, errors } = await graphqlOnEveryPath(
      mirror.gateway,
      mirror.token,
      '{ viewer { username } dttSessions(first: 2) { nodes { segments { repsTarget } } } latestDttSession { segments { points } } }',
    );
    expect(data).toMatchObject({
      viewer: { username: 'demo' },
      dttSessions: null,
      latestDttSession: { segments: [{}, {}, {}, {}] },
    });
    expect(errors).toMatchObject([
      {
        message: 'The details of 2 records are not here yet; try again in 30 s',
        path: ['dttSessions'],
        extensions: { code: 'SERVICE_UNAVAILABLE', retryAfter: 30 },
      },
    ]);
    const { status, headers, body } = await rest(mirror.gateway, mirror.token, '/dtt/templates/1');
    expect({ status, body }).toEqual({
      status: 503,
      body: { ok: false, error: 'The details of 1 record are not here yet; try again in 30 s' },
    });
    expect(headers.get('Retry-After')).toBe('30');
    scene.proxy.misbehave = behave;
    expect((await rest(mirror.gateway, mirror.token, '/dtt/templates/1')).status).toBe(200);
  });

  it('fails for a record that is listed but not there by its id, until a run gives up its details, which are null then', async () => {
    const isDenied = (path: string) => path === '/dtt/sessions/7';
    scene.proxy.misbehave = (request, response) =>
      isDenied(pathOf(request)) && reply(response, 404, { ok: false, error: 'DTT session not found' });
    const query = '{ dttSession(databaseId: 7) { name segments { rawType points repsTarget } } }';
    expect((await ask(query)).errors).toMatchObject([{ extensions: { code: 'SERVICE_UNAVAILABLE' } }]);
    await pullOnly('details', new Map());
    expect((await ask(query)).errors).toMatchObject([{ extensions: { code: 'SERVICE_UNAVAILABLE' } }]);
    await pullOnly('details');
    scene.proxy.requests.length = 0;
    const { data, errors } = await ask(query);
    expect(errors).toBeUndefined();
    const source = (await askSource(query)).data.dttSession;
    expect(data.dttSession).toEqual({
      ...source,
      segments: source.segments.map((segment: object) => ({ ...segment, repsTarget: null })),
    });
    await graphqlOnEveryPath(mirror.gateway, mirror.token, query);
    await pullOnly('lists');
    await pullOnly('details');
    expect(fetched().filter((request) => request.endsWith('/sessions/7'))).toEqual([]);
  });
});

describe('the details of a mirror', () => {
  beforeEach(renew);

  it('are read after the lists, those of the active template first, then those of the newest sessions', async () => {
    expect(await pending()).toEqual([5, sessionCount]);
    const { countsByKind, notes } = await pullOnly('details');
    expect(await pending()).toEqual([0, 0]);
    expect(fetched()[0]).toBe('GET /dtt/templates/1');
    const sessions = fetched()
      .slice(5)
      .map((request) => Number(/\d+$/.exec(request)?.[0]));
    // Four are requested at a time, so their order may differ by as much.
    for (const [place, id] of sessions.entries()) expect(Math.abs(id - 1 - place)).toBeLessThan(4);
    expect(sessions).toHaveLength(sessionCount);
    expect(notes).toEqual([]);
    const name = 'details of DTT sessions';
    expect(countsByKind.get(name)).toMatchObject({
      fetched: sessionCount,
      updated: sessionCount,
      created: 0,
    });
    expect((await pullOnly('details')).countsByKind.get(name)).toMatchObject({ fetched: 0 });
  });

  it('are read again by a full run, which counts what has changed', async () => {
    const name = 'details of DTT sessions';
    expect((await scene.sync({ full: true })).countsByKind.get(name)).toMatchObject({
      updated: sessionCount,
    });
    const { client } = scene.source.database;
    await client.trainerSegment.updateMany({ where: { sessionId: 3 }, data: { repsTarget: 78 } });
    const { countsByKind } = await scene.sync({ full: true });
    expect(countsByKind.get('DTT sessions')).toMatchObject({ updated: 0, unchanged: sessionCount });
    expect(countsByKind.get(name)).toMatchObject({ updated: 1, unchanged: sessionCount - 1 });
  });

  it('stay while a list has not changed, and are pending again once it has', async () => {
    await pullOnly('details');
    await pullOnly('lists');
    expect(await pending()).toEqual([0, 0]);
    const { client } = scene.source.database;
    await client.dttTemplate.update({
      where: { id: 2 },
      data: { updatedAt: new Date(), segments: { updateMany: { where: {}, data: { duration: 5 } } } },
    });
    await client.trainerSegment.updateMany({
      where: { sessionId: 3, order: 0 },
      data: { points: 77, repsTarget: 78 },
    });
    await pullOnly('lists');
    expect(await pending()).toEqual([1, 1]);
    const query =
      '{ dttTemplate(databaseId: 2) { segments { databaseId durationSeconds } } dttSession(databaseId: 3) { segments { points repsTarget } } }';
    expect((await ask(query)).data).toEqual((await askSource(query)).data);
  });
});
