/** A mirror that has read only the lists fetches the details of records when a request selects them. */

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createToken } from '../../../../src/auth/tokens.ts';
import { createUpstream } from '../../../../src/extensions/upstream/client/upstream.ts';
import { readAccount } from '../../../../src/extensions/upstream/mirror/account.ts';
import type { FailedDetails } from '../../../../src/extensions/upstream/mirror/details.ts';
import { type SyncOptions, syncDetails } from '../../../../src/extensions/upstream/mirror/sync.ts';
import { graphqlOnce, graphqlOnEveryPath, openTestGateway, rest } from '../../../support/gateway.ts';
import { databaseWith } from '../../../support/setUp.ts';
import { run as runOnce } from '../support/memoryUpstream.ts';
import { extensionsWith, stillMirror } from '../support/mirrorService.ts';
import { cut } from '../support/standIn/faults.ts';
import { failure } from '../support/standIn/reads.ts';
import { createStandIn } from '../support/standIn/standIn.ts';

const sessionCount = 24;
const size = { sessions: sessionCount, templates: 5 };
const service = await createStandIn({
  rate: 100_000,
  accounts: [{ id: 1, username: 'alice', tokens: ['alice'], size }],
});
const { sessions } = service.account(1);
const { database } = await databaseWith();
const { client, pool } = database;
const upstream = createUpstream({
  base: service.base,
  token: 'alice',
  timing: { timeout: 5_000, retries: 0 },
});
const gateway = await openTestGateway(
  { ...database, close: async () => {} },
  { extensions: extensionsWith(() => stillMirror(pool, upstream)) },
);
afterAll(async () => {
  await gateway.close();
  await service.stop();
});

const run = (options: Partial<SyncOptions> = {}) => runOnce({ pool, upstream, ...options });

/** One step of a run, as a gateway for many accounts runs it. */
async function pullOnly(step: 'lists' | 'details', failed?: FailedDetails) {
  if (step === 'lists') return run({ listsOnly: true });
  return syncDetails({ pool, upstream, account: await readAccount(upstream), ...(failed && { failed }) });
}

let token: string;
const ask = (query: string) => graphqlOnce(gateway, token, query);
/** The requests for records by their ids. */
const fetched = () => service.requests.map(({ path }) => path).filter((path) => /\/\d+$/.test(path));
const pending = () =>
  Promise.all([
    client.dttTemplate.count({ where: { detailsPending: true } }),
    client.dttSession.count({ where: { detailsPending: true } }),
  ]);

beforeAll(async () => {
  await run();
  await pool.query(
    'CREATE TABLE kept AS TABLE "TrainerSegment"; CREATE TABLE kept_of_templates AS TABLE "DttTemplateSegment"',
  );
  ({ token } = await createToken(pool, 'alice', 'test'));
});

/** The ids of the sessions of a device, oldest first, and a session with a template. */
const ofDevice = (device: number) =>
  [...sessions.values()].filter(({ trainer_id }) => trainer_id === device).map(({ id }) => id);
const fourth = ofDevice(1).at(-4);
const [using] = [...sessions.values()].filter(({ settings_id }) => settings_id !== null);

/** Queries that select details, with the records that have these. */
const detailed: [query: string, records: readonly string[]][] = [
  ['{ dttSession(databaseId: 7) { segments { repsMeasured } } }', ['/dtt/sessions/7']],
  ['{ latestDttSession { segments { type createdAt } } }', ['/dtt/sessions/24']],
  [
    '{ dttSessions(first: 2) { edges { cursor node { ...F } } } } fragment F on DttSession { segments { ... on TrainerSegment { strokeLength } } }',
    ['/dtt/sessions/23', '/dtt/sessions/24'],
  ],
  ['{ dttTemplate(databaseId: 1) { segments { databaseId } } }', ['/dtt/templates/1']],
  [
    '{ dttDevice(databaseId: 1) { sessions(first: 1, offset: 3) { nodes { databaseId segments { targetDepth } } } } }',
    [`/dtt/sessions/${fourth}`],
  ],
  [
    '{ dttDevices { nodes { sessions(first: 1) { nodes { segments { repsTarget } } } } } }',
    [1, 2].map((device) => `/dtt/sessions/${ofDevice(device).at(-1)}`).toSorted(),
  ],
  [
    `{ dttSession(databaseId: ${using?.id}) { template { segments { __typename } } } }`,
    [`/dtt/templates/${using?.settings_id}`],
  ],
  [
    `{ nodes(ids: ["${globalId('TrainerSegment', 1)}", "${globalId('TrainerSegment', 2)}"]) { ... on TrainerSegment { rawType repsTarget } } }`,
    ['/dtt/sessions/1'],
  ],
  [
    `{ node(id: "${globalId('DttTemplateSegment', 2)}") { ... on DttTemplateSegment { type template { name } } } }`,
    ['/dtt/templates/1', '/dtt/templates/2', '/dtt/templates/3', '/dtt/templates/4', '/dtt/templates/5'],
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
  const setPending = (isPending: boolean) =>
    pool.query(`UPDATE "DttSession" SET "detailsPending" = ${isPending};
      UPDATE "DttTemplate" SET "detailsPending" = ${isPending}`);
  /** Gives the data of a query from a mirror that has all details, and lets them be pending from then on. */
  async function dataOf(query: string) {
    await setPending(false);
    const { data, errors } = await ask(query);
    expect(errors).toBeUndefined();
    await setPending(true);
    return data;
  }
  beforeEach(async () => {
    service.behave();
    // As a full run would do, but faster.
    await pool.query(`TRUNCATE "TrainerSegment", "DttTemplateSegment"; INSERT INTO "TrainerSegment" TABLE kept;
      INSERT INTO "DttTemplateSegment" TABLE kept_of_templates`);
    await setPending(true);
    service.forgetRequests();
  });

  it.each(detailed)('fetches the details that it selects, once: %s', async (query, records) => {
    const whole = await dataOf(query);
    // The mirror has them no more.
    await pool.query(`UPDATE "TrainerSegment" SET "repsMeasured" = NULL, "speedTarget" = NULL, "strokeLength" = NULL;
      DELETE FROM "DttTemplateSegment" WHERE "templateId" <> 1`);
    const { data, errors } = await ask(query);
    expect([data, errors]).toEqual([whole, undefined]);
    expect(fetched().sort()).toEqual(records);
    await graphqlOnEveryPath(gateway, token, query);
    expect(fetched()).toHaveLength(records.length);
  });

  it.each(listed)('sends no request upstream for what the lists have: %s', async (query) => {
    const whole = await dataOf(query);
    const { data, errors } = await ask(query);
    expect([data, errors]).toEqual([whole, undefined]);
    // A GET request takes another path through the code.
    const byGet = await fetch(`${gateway.url}/graphql?${new URLSearchParams({ query })}`, {
      headers: { Authorization: `Bearer ${token}` },
    });
    expect(await byGet.json()).toEqual({ data });
    expect(fetched()).toEqual([]);
  });

  it('sends no request upstream for a list of the REST API, and fetches the details of a record by its id', async () => {
    const read = async (path: string) => expect((await rest(gateway, token, path)).status).toBe(200);
    for (const path of ['/dtt/sessions', '/dtt/sessions/latest', '/dtt/templates']) await read(path);
    expect(fetched()).toEqual([]);
    for (const id of ['sessions/5', 'settings/2', 'templates/active']) await read(`/dtt/${id}`);
    expect(fetched()).toEqual(['/dtt/sessions/5', '/dtt/templates/2', '/dtt/templates/1']);
  });

  it('fails where details cannot be fetched, says when to retry, and returns what the lists have', async () => {
    service.misbehave({ instead: () => cut });
    const { data, errors } = await graphqlOnEveryPath(
      gateway,
      token,
      '{ viewer { username } dttSessions(first: 2) { nodes { segments { repsTarget } } } latestDttSession { segments { points } } }',
    );
    expect(data).toMatchObject({
      viewer: { username: 'alice' },
      dttSessions: null,
      latestDttSession: { segments: [{}, {}, {}] },
    });
    expect(errors).toMatchObject([
      {
        message: 'The details of 2 records are not here yet; try again in 30 s',
        path: ['dttSessions'],
        extensions: { code: 'SERVICE_UNAVAILABLE', retryAfter: 30 },
      },
    ]);
    const { status, headers, body } = await rest(gateway, token, '/dtt/templates/1');
    expect({ status, body }).toEqual({
      status: 503,
      body: { ok: false, error: 'The details of 1 record are not here yet; try again in 30 s' },
    });
    expect(headers.get('Retry-After')).toBe('30');
    service.behave();
    expect((await rest(gateway, token, '/dtt/templates/1')).status).toBe(200);
  });

  it('fails for a record that is listed but not there by its id, until a run gives up its details, which are null then', async () => {
    const query = '{ dttSession(databaseId: 7) { name segments { rawType points repsTarget } } }';
    const message = 'The details of 1 record are not here yet; try again in 30 s';
    const notHere = { message, extensions: { code: 'SERVICE_UNAVAILABLE' } };
    const whole = (await dataOf(query)).dttSession;
    await pool.query('TRUNCATE "TrainerSegment"; UPDATE "DttSession" SET "listedDigest" = gen_random_uuid()');
    await pullOnly('lists');
    service.misbehave(
      { instead: () => failure(404, 'DTT session not found') },
      { path: /^\/dtt\/sessions\/7$/ },
    );
    expect((await ask(query)).errors).toMatchObject([notHere]);
    await pullOnly('details', new Map());
    expect((await ask(query)).errors).toMatchObject([notHere]);
    await pullOnly('details');
    service.forgetRequests();
    const { data, errors } = await ask(query);
    expect(errors).toBeUndefined();
    const segments = whole.segments.map((segment: object) => ({ ...segment, repsTarget: null }));
    expect(data.dttSession).toEqual({ ...whole, segments });
    await graphqlOnEveryPath(gateway, token, query);
    await pullOnly('lists');
    await pullOnly('details');
    expect(fetched().filter((path) => path.endsWith('/sessions/7'))).toEqual([]);
  });
});

describe('the details of a mirror', () => {
  const name = 'details of DTT sessions';
  beforeEach(async () => {
    service.behave();
    await pool.query('TRUNCATE "Mirror", "User", "DttTemplate" CASCADE');
    await pullOnly('lists');
    service.forgetRequests();
  });

  it('are read after the lists, at most four at once, those of templates first, then those of the newest sessions', async () => {
    let underWay = 0;
    let most = 0;
    service.misbehave({
      async after(reply) {
        most = Math.max(most, ++underWay);
        await new Promise((settle) => setTimeout(settle, 5));
        underWay--;
        return reply;
      },
    });
    expect(await pending()).toEqual([5, sessionCount]);
    const { countsByKind, notes } = await pullOnly('details');
    expect([await pending(), most]).toEqual([[0, 0], 4]);
    for (const path of fetched().slice(0, 5)) expect(path).toMatch(/^\/dtt\/templates\//);
    const ids = fetched()
      .slice(5)
      .map((path) => Number(/\d+$/.exec(path)?.[0]));
    // Four are requested at a time, so their order may differ by as much.
    for (const [place, id] of ids.entries()) expect(Math.abs(sessionCount - id - place)).toBeLessThan(4);
    expect(ids).toHaveLength(sessionCount);
    expect(notes).toEqual([]);
    expect(countsByKind.get(name)).toMatchObject({ fetched: sessionCount, written: sessionCount });
    expect((await pullOnly('details')).countsByKind.get(name)).toMatchObject({ fetched: 0 });
  });

  it('are read again by a full run', async () => {
    await run();
    for (const segment of sessions.get(3)?.TrainerSegment ?? []) segment.repsTarget = 78;
    const { countsByKind } = await run({ full: true });
    expect(countsByKind.get('DTT sessions')).toMatchObject({ fetched: sessionCount, written: 0 });
    expect(countsByKind.get(name)).toMatchObject({ written: sessionCount });
    expect(await client.trainerSegment.count({ where: { repsTarget: 78 } })).toBeGreaterThan(0);
  });
});
