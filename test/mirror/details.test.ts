/** Records of which a mirror has what the lists say: their details are fetched when they are asked for. */

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { learnAccount } from '../../src/mirror/account.ts';
import { openMirror } from '../../src/mirror/mirror.ts';
import { pullDetails, pullLists } from '../../src/mirror/pullAccount.ts';
import { createUpstream } from '../../src/mirror/upstream.ts';
import { graphql, graphqlOnce, rest, type TestGateway } from '../support/gateway.ts';
import { stillMirror } from '../support/mirrorService.ts';
import { openScene, pathOf, reply, type Scene, shortTiming } from '../support/upstream.ts';

let scene: Scene;
let mirror: { gateway: TestGateway; token: string };

beforeAll(async () => {
  scene = await openScene();
});
beforeEach(async () => {
  await scene.renew();
  await pullOnly('lists');
  const { target } = scene;
  const upstream = createUpstream({
    base: scene.proxy.base,
    token: scene.sourceToken,
    timing: { ...shortTiming, retries: 0 },
  });
  mirror = await scene.openMirror(stillMirror(target.pool, upstream));
  scene.proxy.requests.length = 0;
});
afterAll(() => scene?.close());

/** One step of a run, as a gateway of many accounts makes them. */
async function pullOnly(step: 'lists' | 'details') {
  const { upstream, target } = scene;
  const { row: account } = await learnAccount(upstream);
  const opened = await openMirror({ pool: target.pool, source: upstream.base, account });
  if (!opened) throw new Error('another run is under way');
  try {
    const options = { upstream, signal: new AbortController().signal };
    return await (step === 'lists' ? pullLists : pullDetails)(options, opened, account);
  } finally {
    await opened.release();
  }
}

const askSource = (query: string) => graphqlOnce(scene.source, scene.sourceToken, query);
const ask = (query: string) => graphqlOnce(mirror.gateway, mirror.token, query);
/** Of records alone: not of users, and not of what refers to somebody else. */
const fetched = () => scene.proxy.requests.filter((request) => /\/\d+$/.test(request));
const pending = () =>
  Promise.all([
    scene.target.client.dttTemplate.count({ where: { detailsPending: true } }),
    scene.target.client.dttSession.count({ where: { detailsPending: true } }),
  ]);

/** What has details in it, by the records that it takes. */
const detailed: [query: string, records: readonly string[]][] = [
  ['{ dttSession(databaseId: 7) { segments { repsMeasured } } }', ['/dtt/sessions/7']],
  ['{ dttSession(databaseId: 7) { segments { order } } }', ['/dtt/sessions/7']],
  ['{ latestDttSession { segments { type createdAt } } }', ['/dtt/sessions/60']],
  [
    '{ dttSessions(first: 2) { edges { cursor node { ...F } } } } fragment F on DttSession { segments { ... on TrainerSegment { strokeLength } } }',
    ['/dtt/sessions/59', '/dtt/sessions/60'],
  ],
  ['{ dttTemplate(databaseId: 1) { segments { databaseId } } }', ['/dtt/templates/1']],
  ['{ activeDttTemplate { segments { type repeat } } }', ['/dtt/templates/1']],
  [
    '{ dttDevice(databaseId: 1) { sessions(first: 1, offset: 3) { nodes { databaseId segments { targetDepth } } } } }',
    [expect.stringMatching(/^\/dtt\/sessions\/\d+$/)],
  ],
  [
    '{ dttSession(databaseId: 1) { template { segments { __typename } } } }',
    [expect.stringMatching(/^\/dtt\/templates\/\d$/)],
  ],
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
    ['/dtt/templates/1', '/dtt/templates/2', '/dtt/templates/4'],
  ],
  [
    `{ node(id: "${globalId('TrainerSegment', 1)}") { ... on TrainerSegment { rawType session { segments { distanceTravelledMetres } } } } }`,
    ['/dtt/sessions/1'],
  ],
];

function globalId(typename: string, id: number): string {
  return Buffer.from(`${typename}:${id}`).toString('base64');
}

describe('a read of a mirror that has the lists alone', () => {
  it.each(detailed)('has the details fetched that it asks for, once: %s', async (query, records) => {
    const { data, errors } = await ask(query);
    expect(errors).toBeUndefined();
    expect(data).toEqual((await askSource(query)).data);
    expect(fetched().sort()).toEqual(
      records.map((path) =>
        typeof path === 'string'
          ? `GET ${path}`
          : expect.stringMatching(/^GET \/dtt\/(templates|sessions)\/\d+$/),
      ),
    );
    await graphql(mirror.gateway, mirror.token, query);
    expect(fetched()).toHaveLength(records.length);
  });
});
