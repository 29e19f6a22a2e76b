/**
 * Every REST route: its envelope, and the order and pages of its lists (docs/rest.md). The fields of every response are compared
 * with the OpenAPI document when the gateway of a test is closed.
 */

import { parse } from 'graphql';
import { describe, expect, it } from 'vitest';
import type { PrismaClient } from '../../src/database/generated/prisma/client.ts';
import { loadRoutes, routes } from '../../src/rest/routes.ts';
import { createContext } from '../../src/schema/context.ts';
import { type Account, addToken, createAccount, setActive } from '../support/accounts.ts';
import { postJson, rest } from '../support/gateway.ts';
import { idsOf, type JsonRecord, listOf, pathsFor, recordOf, withId } from '../support/restResponses.ts';
import { gatewayWith } from '../support/setUp.ts';

const { gateway, alice } = await gatewayWith(['alice']);
const { client } = gateway.database;
await setActive(client, alice, 1);
/** A user with a token but without records. */
const newcomer = await createUser(client, 'newcomer');

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

it('all routes are tested here', () => {
  const tested = [...lists, ...singles, ...nullables].map(({ path }) => `GET ${path}`);
  expect(routes.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(
    [...tested, 'POST /dtt/templates/{id}'].sort(),
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

it.each(lists)('GET $path gives a page of records in the documented order, newest first', async (route) => {
  const read = async (token: string, query = '') =>
    listOf(await rest(gateway, token, `${route.path}${query}`));
  const { data, pagination } = await read(alice.token);
  expect([idsOf(data), pagination]).toEqual([route.ids(alice), { limit: 50, offset: 0 }]);
  for (const record of data) expectSegments(record, route);
  const page = await read(alice.token, '?limit=1&offset=1');
  expect([idsOf(page.data), page.pagination]).toEqual([
    route.ids(alice).slice(1, 2),
    { limit: 1, offset: 1 },
  ]);
  const isViewer = route.path === '/users';
  expect(idsOf((await read(newcomer.token)).data)).toEqual(isViewer ? [newcomer.id] : []);
});

it.each([...singles, ...nullables])(
  'GET $path gives the record with its segments in order',
  async (route) => {
    const ids = route.ids(alice);
    for (const [index, path] of pathsFor(route.path, alice).entries()) {
      const record = recordOf(await rest(gateway, alice.token, path));
      expect(record.id).toBe(ids[index]);
      expectSegments(record, route);
    }
    if (!nullables.includes(route)) return;
    const { status, body } = await rest(gateway, newcomer.token, route.path);
    expect([status, body]).toEqual([200, { ok: true, data: null }]);
  },
);

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

describe('an operation of the routes', () => {
  const load = (text: string) => loadRoutes(parse(text));

  it.each([
    ['does not fit the schema', '{ data: nobody }', 'operations.graphql: Cannot query field "nobody"'],
    ['has an unknown directive', '{ data: viewer @nothing { id } }', 'operations.graphql: Unknown directive'],
  ])('stops the start when it %s', (_, selection, message) => {
    expect(() => load(`query X @http(method: GET, path: "/x") ${selection}`)).toThrow(message);
  });

  it('may merge fields of a nested record into its data by @spread, and is null when there is no nested record', async () => {
    const [route] = load(`query X($id: Int!) @http(method: GET, path: "/x") {
      data: dttSession(databaseId: $id) { template @spread { title: name } passed } }`);
    const dataOf = async (index: number) => {
      const context = createContext(
        gateway.database.sql,
        { id: alice.userId, tokenId: 1, scope: 'activate' },
        undefined,
      );
      return (await route?.run({ id: alice.dttSessions[index] ?? 0 }, context))?.data;
    };
    expect(await dataOf(1)).toEqual({ data: { title: 'Program 1 of alice', passed: false } });
    for (const index of [5, 99]) expect(await dataOf(index)).toEqual({ data: null });
  });
});

async function createUser(database: PrismaClient, username: string) {
  const { id } = await database.user.create({ data: { username, subscriptionTier: 'ultra' } });
  const token = await addToken(database, username);
  return { id, token };
}
