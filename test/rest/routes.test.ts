/**
 * Every REST route: its envelope, and the order and pages of its lists (docs/rest.md). The fields of every response are compared
 * with the OpenAPI document when the gateway of a test is closed.
 */

import { parse } from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PrismaClient } from '../../src/database/generated/prisma/client.ts';
import { loadRoutes, routes } from '../../src/rest/routes.ts';
import { createContext } from '../../src/schema/context.ts';
import { type Account, addToken, createAccount, importTemplate } from '../support/accounts.ts';
import { openTestGateway, postJson, rest, type TestGateway } from '../support/gateway.ts';
import { idsOf, type JsonRecord, listOf, pathsFor, recordOf, withId } from '../support/restResponses.ts';

let gateway: TestGateway;
let alice: Account;
/** A user with a token but without records. */
let newcomer: { id: number; token: string };
/** A user whose records have equal times, or none. */
let twin: { token: string; newestFirst: Readonly<Record<string, readonly number[]>> };

beforeAll(async () => {
  gateway = await openTestGateway();
  const { client } = gateway.database;
  alice = await createAccount(client, 'alice');
  await client.user.update({
    where: { id: alice.userId },
    data: { activeTemplateId: alice.dttTemplates[1] },
  });
  newcomer = await createUser(client, 'newcomer');
  twin = await createTwin(client);
});
afterAll(() => gateway?.close());

interface Case {
  readonly path: string;
  /** The ids of Alice's records, in the expected order. */
  readonly ids: (account: Account) => readonly number[];
  /** The types of the segments that `createAccount` creates, in the expected order. */
  readonly segments?: readonly string[];
}

const ofTemplate = ['warmup', 'training'];
const ofSession = ['repetition', 'endurance'];
const ofLock = ['start', 'end'];

const lists: readonly Case[] = [
  { path: '/users', ids: ({ userId }) => [userId] },
  { path: '/dtt', ids: ({ dttDevices }) => dttDevices },
  { path: '/dtt/templates', ids: ({ dttTemplates }) => dttTemplates },
  { path: '/dtt/sessions', ids: ({ dttSessions }) => dttSessions, segments: ofSession },
  { path: '/lkbx', ids: ({ lkbxDevices }) => lkbxDevices },
  { path: '/lkbx/templates', ids: ({ lockTemplates }) => lockTemplates },
  { path: '/lkbx/sessions', ids: ({ lockSessions }) => lockSessions, segments: ofLock },
  { path: '/lkbx/session', ids: ({ lockSessions }) => lockSessions, segments: ofLock },
  { path: '/ossm', ids: ({ ossmDevices }) => ossmDevices },
];

/** Routes that return one record: that with the id in the path, or the viewer. */
const singles: readonly Case[] = [
  { path: '/users/me', ids: ({ userId }) => [userId] },
  { path: '/users/{id}', ids: ({ userId }) => [userId] },
  { path: '/dtt/{id}', ids: ({ dttDevices }) => dttDevices },
  { path: '/dtt/templates/{id}', ids: ({ dttTemplates }) => dttTemplates, segments: ofTemplate },
  { path: '/dtt/settings/{id}', ids: ({ dttTemplates }) => dttTemplates, segments: ofTemplate },
  { path: '/dtt/sessions/{id}', ids: ({ dttSessions }) => dttSessions, segments: ofSession },
  { path: '/lkbx/{id}', ids: ({ lkbxDevices }) => lkbxDevices },
  { path: '/lkbx/templates/{id}', ids: ({ lockTemplates }) => lockTemplates },
  { path: '/lkbx/sessions/{id}', ids: ({ lockSessions }) => lockSessions, segments: ofLock },
  { path: '/lkbx/session/{id}', ids: ({ lockSessions }) => lockSessions, segments: ofLock },
  { path: '/ossm/{id}', ids: ({ ossmDevices }) => ossmDevices },
];

/** Routes that return one record, or null when there is none. */
const nullables: readonly Case[] = [
  { path: '/dtt/templates/active', ids: ({ dttTemplates }) => [dttTemplates[1]], segments: ofTemplate },
  { path: '/dtt/sessions/latest', ids: ({ dttSessions }) => dttSessions.slice(0, 1), segments: ofSession },
  { path: '/lkbx/templates/active', ids: ({ lockTemplates }) => [lockTemplates[0]] },
  { path: '/lkbx/sessions/latest', ids: ({ lockSessions }) => [lockSessions[0]], segments: ofLock },
  { path: '/lkbx/session/current', ids: ({ lockSessions }) => [lockSessions[0]], segments: ofLock },
];

function expectSegments(record: JsonRecord, { segments }: Case): void {
  const [found] = Object.values(record).filter((value) => Array.isArray(value));
  expect(found?.map(({ type }: JsonRecord) => type)).toEqual(segments);
}

describe('the routes', () => {
  it('are all tested here', () => {
    const tested = [...lists, ...singles, ...nullables].map(({ path }) => `GET ${path}`);
    expect(routes.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(
      [...tested, 'POST /dtt/templates/{id}'].sort(),
    );
  });

  it.each(routes.filter(({ method }) => method === 'GET'))(
    'respond to HEAD as to GET without the body: $path',
    async ({ path }) => {
      const url = `${gateway.url}/api/v1${pathsFor(path, alice)[0]}`;
      const headers = { Authorization: `Bearer ${alice.token}` };
      const [get, head] = await Promise.all(['GET', 'HEAD'].map((method) => fetch(url, { method, headers })));
      expect(head?.status).toBe(200);
      expect(aboutResponse(head)).toEqual(aboutResponse(get));
      expect(head?.headers.get('Content-Type')).toBe('application/json; charset=utf-8');
      expect(await head?.text()).toBe('');
      expect(await get?.text()).not.toBe('');
    },
  );
});

describe('the response cache', () => {
  /** Reads the targets. @returns how many responses were stored, and how many came from the cache. */
  async function read(targets: readonly string[]): Promise<[stored: number, hits: number]> {
    const { counters, usage } = gateway.responseCache;
    const before = { stored: usage().entries, hits: counters.hits };
    for (const target of targets) expect((await rest(gateway, alice.token, target)).status).toBe(200);
    return [usage().entries - before.stored, counters.hits - before.hits];
  }

  it('has one response for all targets that are equivalent for a route', async () => {
    const own = `targetUserId=${alice.userId}`;
    const page = [
      'limit=7',
      'limit=7&z=1',
      'z=2&offset=0&limit=7',
      `${own}&limit=%37`,
      `${own}&${own}&limit=7`,
    ];
    expect(await read(page.map((query) => `/dtt?${query}`))).toEqual([1, 4]);
    const [id] = alice.dttDevices;
    await read([`/dtt/${id}`]);
    expect(await read(['limit=x', `z=${id}`, own].map((query) => `/dtt/${id}?${query}`))).toEqual([0, 3]);
  });

  it('has a separate response for each route, id, limit and offset', async () => {
    const pages = ['/dtt?limit=9', '/dtt?limit=9&offset=1', '/lkbx?limit=9', '/lkbx/sessions?limit=9'];
    expect(await read([...pages, '/lkbx/session?limit=9'])).toEqual([5, 0]);
    const ids = alice.dttDevices.slice(0, 2);
    for (let time = 0; time < 2; time++)
      for (const id of ids)
        expect((await rest(gateway, alice.token, `/dtt/${id}`)).body.data).toMatchObject({ id });
  });
});

describe.each(lists)('GET $path', (route) => {
  it('returns a page of records in the documented order, each with its segments in theirs', async () => {
    const { data, pagination } = listOf(await rest(gateway, alice.token, route.path));
    expect(idsOf(data)).toEqual(route.ids(alice));
    expect(pagination).toEqual({ limit: 50, offset: 0 });
    for (const record of data) expectSegments(record, route);
  });

  it('returns the page for limit and offset, and echoes them', async () => {
    const page = listOf(await rest(gateway, alice.token, `${route.path}?limit=1&offset=1`));
    expect(page.pagination).toEqual({ limit: 1, offset: 1 });
    expect(idsOf(page.data)).toEqual(route.ids(alice).slice(1, 2));
  });

  it('returns an empty page to a viewer without records', async () => {
    const { data } = listOf(await rest(gateway, newcomer.token, route.path));
    expect(idsOf(data)).toEqual(route.path === '/users' ? [newcomer.id] : []);
  });

  it('sorts records with equal times by descending id, and records without a time last', async () => {
    const { data } = listOf(await rest(gateway, twin.token, route.path));
    expect(idsOf(data)).toEqual(twin.newestFirst[route.path]);
  });
});

describe('a list', () => {
  it('has 50 records a page by default, and 100 at most', async () => {
    const owner = await createUser(gateway.database.client, 'collector');
    await gateway.database.client.dttDevice.createMany({
      data: Array.from({ length: 101 }, (_, index) => ({
        ownerId: owner.id,
        bubbleId: `collected-${index}`,
      })),
    });
    const pages = await Promise.all(
      ['', '?limit=100', '?limit=100&offset=100', '?offset=101'].map(async (query) =>
        listOf(await rest(gateway, owner.token, `/dtt${query}`)),
      ),
    );
    expect(pages.map(({ data, pagination }) => ({ ...pagination, count: data.length }))).toEqual([
      { limit: 50, offset: 0, count: 50 },
      { limit: 100, offset: 0, count: 100 },
      { limit: 100, offset: 100, count: 1 },
      { limit: 50, offset: 101, count: 0 },
    ]);
  });

  it('ignores unknown parameters', async () => {
    const { data } = listOf(await rest(gateway, alice.token, '/dtt?order=asc&ownerId=1&limit=2'));
    expect(idsOf(data)).toEqual(alice.dttDevices.slice(0, 2));
  });
});

describe.each(singles)('GET $path', (route) => {
  it('gives the record with its segments in order', async () => {
    const ids = route.ids(alice);
    for (const [index, path] of pathsFor(route.path, alice).entries()) {
      const record = recordOf(await rest(gateway, alice.token, path));
      expect(record.id).toBe(ids[index]);
      expectSegments(record, route);
    }
  });
});

describe.each(nullables)('GET $path', (route) => {
  it('gives the record with its segments in order', async () => {
    const record = recordOf(await rest(gateway, alice.token, route.path));
    expect([record.id]).toEqual(route.ids(alice));
    expectSegments(record, route);
  });

  it('returns null when there is none', async () => {
    const { status, body } = await rest(gateway, newcomer.token, route.path);
    expect(status).toBe(200);
    expect(body).toEqual({ ok: true, data: null });
  });
});

describe('POST /dtt/templates/{id}', () => {
  it('returns the activated template in short form, and whether the schedule type changed', async () => {
    const carol = await createAccount(gateway.database.client, 'carol');
    const [id] = carol.dttTemplates;
    const path = withId('/dtt/templates/{id}', id);
    const record = recordOf(await postJson(gateway, carol.token, path, { isActive: true }));
    expect(record).toEqual({
      id,
      name: 'Program 0 of carol',
      isActive: true,
      scheduleTypeChanged: true,
      Segment: [
        { id: expect.any(Number), type: 'warmup', duration: 60 },
        { id: expect.any(Number), type: 'training', duration: 300 },
      ],
    });
    // The order of the keys shows that the template was read in one statement. JSON itself has no order.
    expect(Object.keys(record)).toEqual(['id', 'name', 'isActive', 'Segment', 'scheduleTypeChanged']);
    expect(recordOf(await rest(gateway, carol.token, '/dtt/templates/active')).id).toBe(id);
  });
});

describe('a value', () => {
  it('of type time is null when it has not come yet', async () => {
    const [, , neverVisited] = alice.dttDevices;
    expect(recordOf(await rest(gateway, alice.token, `/dtt/${neverVisited}`))).toMatchObject({
      lastVisited: null,
      lastLogAt: null,
    });
    const [undecided] = alice.dttSessions;
    const session = recordOf(await rest(gateway, alice.token, `/dtt/sessions/${undecided}`));
    expect(session).toMatchObject({
      passed: null,
      TrainerSegment: [{ passed: null, order: 0 }, { order: 1 }],
    });
  });

  it('of type time is in UTC with milliseconds', async () => {
    const [id] = alice.dttDevices;
    const { lastVisited } = recordOf(await rest(gateway, alice.token, `/dtt/${id}`));
    expect(lastVisited).toBe('2026-01-01T00:30:00.000Z');
  });
});

describe('an imported template', () => {
  it('is listed among the owned ones, sorted by its creation time', async () => {
    const { client } = gateway.database;
    const [dora, erin] = [await createAccount(client, 'dora'), await createAccount(client, 'erin')];
    const [imported] = erin.dttTemplates;
    await client.dttTemplate.update({
      where: { id: imported },
      data: { createdDate: new Date('2026-01-01T00:25:00Z') },
    });
    await importTemplate(client, dora, imported);
    const [newest, ...others] = dora.dttTemplates;
    const { data } = listOf(await rest(gateway, dora.token, '/dtt/templates'));
    expect(idsOf(data)).toEqual([newest, imported, ...others]);
    for (const path of ['/dtt/templates/{id}', '/dtt/settings/{id}']) {
      const record = recordOf(await rest(gateway, dora.token, withId(path, imported)));
      expect(record).toMatchObject({ id: imported, ownerId: erin.userId });
    }
  });
});

describe('an operation of the routes', () => {
  const load = (text: string) => loadRoutes(parse(text));

  it('is a list when it has the variables limit and offset, and a mutation when its operation is one', () => {
    const [list, few, change] = load(`
      query List($limit: Int!, $offset: Int!) @http(method: GET, path: "/list") {
        data: users(first: $limit, offset: $offset) { data: nodes { id: databaseId } } }
      query Few($limit: Int!) @http(method: GET, path: "/few") { data: users(first: $limit) { totalCount } }
      mutation Change($id: Int!) @http(method: POST, path: "/change/{id}", body: { isActive: true, name: "x", by: null }) {
        data: activateTemplate(template: { databaseId: $id }) { scheduleTypeChanged } }`);
    expect(list).toMatchObject({ label: 'GET /list', isList: true, isMutation: false, body: undefined });
    expect(few).toMatchObject({ isList: false, isMutation: false, missing: undefined });
    expect(change).toMatchObject({
      label: 'POST /change/{id}',
      isMutation: true,
      body: {
        values: { isActive: true, name: 'x', by: null },
        message: 'Request body must include { isActive: true, name: "x", by: null }',
      },
    });
    expect(list?.description).toBe('The users whom the viewer may see: the viewer alone.');
  });

  it.each([
    ['does not fit the schema', '{ data: nobody }', 'operations.graphql: Cannot query field "nobody"'],
    ['has an unknown directive', '{ data: viewer @nothing { id } }', 'operations.graphql: Unknown directive'],
  ])('stops the start when it %s', (_, selection, message) => {
    expect(() => load(`query X @http(method: GET, path: "/x") ${selection}`)).toThrow(message);
  });

  it('is an error at the start if it is a subscription', () => {
    const follow = 'subscription X { data: activeDttTemplate { name } }';
    expect(() => load(follow)).toThrow(
      'operations.graphql has an operation that cannot be run:\nsubscription X',
    );
  });

  it('may merge fields of a nested record into the record by @spread, and is null when there is no nested record', async () => {
    const [route] = load(`query X($id: Int!) @http(method: GET, path: "/x") {
      data: dttSession(databaseId: $id) { name template @spread { title: name } passed trainer { owner @spread { league } apiHits } } }`);
    const { sql } = gateway.database;
    const response = async (index: number) => {
      const context = createContext(sql, { id: alice.userId, tokenId: 1 }, undefined);
      return JSON.stringify((await route?.run({ id: alice.dttSessions[index] ?? 0 }, context))?.data);
    };
    const trainer = { league: 0, apiHits: 0 };
    expect(await response(1)).toBe(
      JSON.stringify({
        data: { name: 'Session 1 of alice', title: 'Program 1 of alice', passed: false, trainer },
      }),
    );
    expect(await response(5)).toBe(JSON.stringify({ data: null }));
    expect(await response(99)).toBe(JSON.stringify({ data: null }));
  });
});

/** The headers that do not depend on the time, the connection or the individual request. */
function aboutResponse(response: Response | undefined): Record<string, string> {
  const {
    date,
    connection,
    'keep-alive': keepAlive,
    'x-request-id': id,
    ratelimit,
    ...others
  } = Object.fromEntries(response?.headers ?? []);
  return others;
}

async function createUser(database: PrismaClient, username: string) {
  const { id } = await database.user.create({ data: { username, subscriptionTier: 'ultra' } });
  const token = await addToken(database, username);
  return { id, token };
}

/** Creates three records with the same time, one older, one newer and, where the time may be null, two without a time. */
async function createTwin(database: PrismaClient): Promise<typeof twin> {
  const { id: ownerId, token } = await createUser(database, 'twin');
  const [older, same, newer] = ['2026-01-01', '2026-01-02', '2026-01-03'].map((day) => new Date(day));
  if (!older || !same || !newer) throw new Error('there are three days');
  const required = [older, same, same, newer, same];
  const create = async <Time extends Date | null>(
    times: readonly Time[],
    createRow: (time: Time, name: string) => Promise<{ id: number }>,
  ) => {
    const rows: { id: number; time: number }[] = [];
    // One after the other, so that the ids ascend.
    for (const [index, time] of times.entries()) {
      const { id } = await createRow(time, `twin-${index}`);
      rows.push({ id, time: time?.getTime() ?? Number.NEGATIVE_INFINITY });
    }
    return rows.sort((a, b) => (a.time === b.time ? b.id - a.id : b.time - a.time)).map(({ id }) => id);
  };
  const optional = [null, ...required, null];
  const dttDevices = await create(optional, (lastVisited, name) =>
    database.dttDevice.create({ data: { ownerId, bubbleId: name, lastVisited } }),
  );
  const trainerId = dttDevices[0] ?? 0;
  const lockSessions = await create(required, (startDate, name) =>
    database.lockSession.create({
      data: { ownerId, bubbleId: name, publicId: name, lockState: 'completed', duration: 1, startDate },
    }),
  );
  return {
    token,
    newestFirst: {
      '/users': [ownerId],
      '/dtt': dttDevices,
      '/dtt/templates': await create(required, (createdDate, name) =>
        database.dttTemplate.create({
          data: { ownerId, bubbleId: name, name, targetDepth: 1, targetWindow: 1, createdDate },
        }),
      ),
      '/dtt/sessions': await create(required, (createdAt, name) =>
        database.dttSession.create({ data: { ownerId, bubbleId: name, trainerId, createdAt } }),
      ),
      '/lkbx': await create(optional, (lastVisited, name) =>
        database.lkbxDevice.create({ data: { ownerId, bubbleId: name, lastVisited } }),
      ),
      '/lkbx/templates': await create(required, (createdAt, name) =>
        database.lockTemplate.create({ data: { ownerId, name, duration: 1, createdAt } }),
      ),
      '/lkbx/sessions': lockSessions,
      '/lkbx/session': lockSessions,
      '/ossm': await create(optional, (lastVisited, name) =>
        database.ossmDevice.create({
          data: { ownerId, bubbleId: name, chip: 'ESP32-S3', lastVisited },
        }),
      ),
    },
  };
}
