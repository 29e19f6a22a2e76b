/** Lists as Relay connections: every row exactly once, whichever way a client pages through them. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PrismaClient } from '../../src/database/generated/prisma/client.ts';
import { addToken, createAccount } from '../support/accounts.ts';
import { graphqlOnEveryPath, openTestGateway, rest, type TestGateway } from '../support/gateway.ts';
import { idsOf, listOf } from '../support/restResponses.ts';

let gateway: TestGateway;
let token: string;

beforeAll(async () => {
  gateway = await openTestGateway();
  token = await createOwner(gateway.database.client);
});
afterAll(() => gateway?.close());

/** The lists, each with the REST route that has the same order. */
const lists = [
  ['dttDevices', '/dtt'],
  ['dttTemplates', '/dtt/templates'],
  ['dttSessions', '/dtt/sessions'],
  ['lkbxDevices', '/lkbx'],
  ['lockTemplates', '/lkbx/templates'],
  ['lockSessions', '/lkbx/sessions'],
  ['ossmDevices', '/ossm'],
] as const;

interface Page {
  readonly totalCount: number;
  readonly nodes: { databaseId: number }[];
  readonly edges: { cursor: string; node: { databaseId: number } }[];
  readonly pageInfo: {
    hasNextPage: boolean;
    hasPreviousPage: boolean;
    startCursor: string | null;
    endCursor: string | null;
  };
}

/** Reads all pages of a list with the same document, which is validated and compiled only once. */
async function read(list: string, args: Record<string, unknown> = {}): Promise<Page> {
  const { data, errors } = await graphqlOnEveryPath(
    gateway,
    token,
    `query ($first: Int, $last: Int, $after: String, $before: String, $offset: Int) {
      ${list}(first: $first, last: $last, after: $after, before: $before, offset: $offset) {
        totalCount
        nodes { databaseId }
        edges { cursor node { databaseId } }
        pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
      }
    }`,
    args,
  );
  expect(errors).toBeUndefined();
  const page: Page = data[list];
  expect(page.edges.map(({ node }) => node)).toEqual(page.nodes);
  expect(page.pageInfo.startCursor).toBe(page.edges[0]?.cursor ?? null);
  expect(page.pageInfo.endCursor).toBe(page.edges.at(-1)?.cursor ?? null);
  return page;
}

const ids = ({ nodes }: Page) => nodes.map(({ databaseId }) => databaseId);

describe.each(lists)('%s', (list, path) => {
  const everyRow = async () => idsOf(listOf(await rest(gateway, token, path)).data);

  it('has the rows of the REST route in the same order, and their number as totalCount', async () => {
    const page = await read(list);
    expect(ids(page)).toEqual(await everyRow());
    expect(page.totalCount).toBe(7);
    expect(page.pageInfo).toMatchObject({ hasNextPage: false, hasPreviousPage: false });
  });

  it.each(['forward', 'backward'])('has every row exactly once when read %s', async (way) => {
    const isForward = way === 'forward';
    const found: number[] = [];
    let cursor: string | null = null;
    for (let more = true; more; ) {
      const args = isForward ? { first: 3, after: cursor } : { last: 3, before: cursor };
      const { nodes, pageInfo, totalCount }: Page = await read(list, args);
      expect(totalCount).toBe(7);
      expect(isForward ? pageInfo.hasPreviousPage : pageInfo.hasNextPage).toBe(cursor !== null);
      expect(nodes.length).toBeGreaterThan(0);
      const ids = nodes.map(({ databaseId }) => databaseId);
      found.splice(isForward ? found.length : 0, 0, ...ids);
      cursor = isForward ? pageInfo.endCursor : pageInfo.startCursor;
      more = isForward ? pageInfo.hasNextPage : pageInfo.hasPreviousPage;
    }
    expect(found).toEqual(await everyRow());
  });

  it('has the rows between two cursors, from either end', async () => {
    const { edges } = await read(list);
    const rows = await everyRow();
    for (const [from, to] of [
      [1, 4],
      [3, 3],
      [4, 1],
    ] as const) {
      const bounds = { after: edges[from]?.cursor, before: edges[to]?.cursor };
      const between = rows.slice(from + 1, to);
      expect(ids(await read(list, { ...bounds, first: 2 }))).toEqual(between.slice(0, 2));
      expect(ids(await read(list, { ...bounds, last: 2 }))).toEqual(between.slice(-2));
    }
  });

  it('has no nodes after its end and before its start, and still the totalCount of all rows', async () => {
    const { pageInfo } = await read(list);
    for (const args of [
      { after: pageInfo.endCursor },
      { before: pageInfo.startCursor },
      { last: 3, before: pageInfo.startCursor },
      { offset: 7 },
      { offset: 2 ** 31 - 1 },
    ]) {
      const page = await read(list, args);
      expect(page.nodes).toEqual([]);
      expect(page.totalCount).toBe(7);
      expect(page.pageInfo).toMatchObject({ startCursor: null, endCursor: null });
    }
  });
});

it('a cursor at a time that Date cannot represent is an error', async () => {
  const { userId, token } = await createAccount(gateway.database.client, 'beyond');
  await gateway.database.pool.query(
    `UPDATE "OssmDevice" SET "lastVisited" = '280000-01-01' WHERE "ownerId" = $1`,
    [userId],
  );
  for (const fields of ['edges { cursor }', 'pageInfo { endCursor }']) {
    const { errors } = await graphqlOnEveryPath(gateway, token, `{ ossmDevices { ${fields} } }`);
    expect(errors).toMatchObject([{ extensions: { code: 'INTERNAL_SERVER_ERROR' } }]);
  }
});

describe('a list of a record', () => {
  it('is paged for each record by itself', async () => {
    const page = 'totalCount nodes { databaseId } edges { cursor } pageInfo { hasNextPage hasPreviousPage }';
    const { data } = await graphqlOnEveryPath(
      gateway,
      token,
      `{ dttDevices { nodes { databaseId all: sessions { ${page} } newest: sessions(first: 1) { ${page} } oldest: sessions(last: 1) { ${page} } second: sessions(first: 1, offset: 1) { ${page} } } } }`,
    );
    const withSessions = data.dttDevices.nodes.filter(({ all }: { all: Page }) => all.totalCount > 0);
    expect(withSessions.map(({ all }: { all: Page }) => all.totalCount).sort()).toEqual([3, 4]);
    for (const { all, newest, oldest, second } of withSessions) {
      const rows = ids(all);
      expect(rows).toHaveLength(all.totalCount);
      expect(ids(newest)).toEqual(rows.slice(0, 1));
      expect(ids(oldest)).toEqual(rows.slice(-1));
      expect(ids(second)).toEqual(rows.slice(1, 2));
      for (const { totalCount } of [newest, oldest, second]) expect(totalCount).toBe(all.totalCount);
      expect(newest.pageInfo).toEqual({ hasNextPage: true, hasPreviousPage: false });
      expect(oldest.pageInfo).toEqual({ hasNextPage: false, hasPreviousPage: true });
      expect(second.pageInfo).toEqual({ hasNextPage: true, hasPreviousPage: true });
    }
  });
});

/** A user with seven of everything: some share their time, and some devices have never connected. */
async function createOwner(database: PrismaClient): Promise<string> {
  const { id: ownerId } = await database.user.create({
    data: { username: 'owner', subscriptionTier: 'ultra' },
  });
  const days = [3, 1, 2, 2, 3, 2, 1].map((day) => new Date(`2026-01-0${day}T00:00:00.123Z`));
  const visits = days.map((day, index) => (index % 3 === 0 ? null : day));
  const select = { id: true };
  const device = (lastVisited: Date | null, index: number) => ({
    ownerId,
    bubbleId: `owner-${index}`,
    lastVisited,
  });
  const devices = await database.dttDevice.createManyAndReturn({ data: visits.map(device), select });
  await database.lkbxDevice.createMany({ data: visits.map(device) });
  await database.ossmDevice.createMany({
    data: visits.map((visit, index) => ({ ...device(visit, index), chip: 'ESP32-S3' })),
  });
  await database.dttTemplate.createMany({
    data: days.map((createdDate, index) => ({
      ownerId,
      bubbleId: `owner-${index}`,
      name: `${index}`,
      targetDepth: 1,
      targetWindow: 1,
      createdDate,
    })),
  });
  await database.dttSession.createMany({
    data: days.map((createdAt, index) => ({
      ownerId,
      bubbleId: `owner-${index}`,
      trainerId: devices[index % 2]?.id ?? 0,
      createdAt,
    })),
  });
  await database.lockTemplate.createMany({
    data: days.map((createdAt, index) => ({ ownerId, name: `${index}`, duration: 1, createdAt })),
  });
  await database.lockSession.createMany({
    data: days.map((startDate, index) => ({
      ownerId,
      bubbleId: `owner-${index}`,
      publicId: `owner-${index}`,
      lockState: 'completed',
      duration: 1,
      startDate,
    })),
  });
  const token = await addToken(database, 'owner');
  return token;
}
