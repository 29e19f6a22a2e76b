/** Lists as Relay connections: every row exactly once, whichever way a client pages through them. */

import { afterAll, describe, expect, it } from 'vitest';
import type { PrismaClient } from '../../src/database/generated/prisma/client.ts';
import { addToken, createAccount } from '../support/accounts.ts';
import { graphqlOnEveryPath, openTestGateway } from '../support/gateway.ts';

const days = [3, 1, 2, 2, 3, 2, 1].map((day) => new Date(`2026-01-0${day}T00:00:00.123Z`));

/** The rows in the order of their list: newest first, and highest id first. Every third device was never visited, and is last. */
const order = { dttSessions: [4, 0, 5, 3, 2, 6, 1], ossmDevices: [4, 5, 2, 1, 6, 3, 0] };

/** The ids of the rows, in the order in which they were created. */
const created: Record<keyof typeof order, number[]> = { dttSessions: [], ossmDevices: [] };

const gateway = await openTestGateway();
const token = await createOwner(gateway.database.client);
afterAll(() => gateway.close());

/** A list whose order has no nulls, and one whose order has some. `oracle.test.ts` compares the pages of others. */
const lists = ['dttSessions', 'ossmDevices'] as const;

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

describe.each(lists)('%s', (list) => {
  const everyRow = () => order[list].map((index) => created[list][index]);

  it('has all rows in order, and their number as totalCount', async () => {
    const page = await read(list);
    expect(ids(page)).toEqual(everyRow());
    expect(page.totalCount).toBe(7);
    expect(page.pageInfo).toMatchObject({ hasNextPage: false, hasPreviousPage: false });
  });

  it('has the rows between two cursors, from either end', async () => {
    const { edges } = await read(list);
    const rows = everyRow();
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

it('a list of a record is paged for each record by itself', async () => {
  const older = 'where: { createdAt: { lt: "2000-01-01T00:00:00Z" } }';
  const page = 'totalCount nodes { databaseId } edges { cursor } pageInfo { hasNextPage hasPreviousPage }';
  const { data } = await graphqlOnEveryPath(
    gateway,
    token,
    `{ dttSessions { totalCount } none: dttSessions(${older}) { totalCount }
        dttDevices { nodes { databaseId all: sessions { ${page} } none: sessions(${older}) { totalCount } newest: sessions(first: 1) { ${page} } oldest: sessions(last: 1) { ${page} } second: sessions(first: 1, offset: 1) { ${page} } } } }`,
  );
  const withSessions = data.dttDevices.nodes.filter(({ all }: { all: Page }) => all.totalCount > 0);
  expect(withSessions.map(({ all }: { all: Page }) => all.totalCount).sort()).toEqual([3, 4]);
  expect([data.dttSessions.totalCount, data.none.totalCount]).toEqual([7, 0]);
  for (const { all, none, newest, oldest, second } of withSessions) {
    expect(none.totalCount).toBe(0);
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

/** A user with seven sessions on two trainer devices, and seven OSSM devices. Some share their time. */
async function createOwner(database: PrismaClient): Promise<string> {
  const { id: ownerId } = await database.user.create({
    data: { username: 'owner', subscriptionTier: 'ultra' },
  });
  const devices: number[] = [];
  for (const index of [0, 1])
    devices.push((await database.dttDevice.create({ data: { ownerId, bubbleId: `trainer-${index}` } })).id);
  for (const [index, day] of days.entries()) {
    const row = { ownerId, bubbleId: `owner-${index}` };
    const session = { ...row, trainerId: devices[index % 2] ?? 0, createdAt: day };
    created.dttSessions.push((await database.dttSession.create({ data: session })).id);
    const device = { ...row, chip: 'ESP32-S3', lastVisited: index % 3 === 0 ? null : day };
    created.ossmDevices.push((await database.ossmDevice.create({ data: device })).id);
  }
  return addToken(database, 'owner');
}
