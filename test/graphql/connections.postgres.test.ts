/** Lists as Relay connections: every row exactly once, whichever way a client pages through them. */

import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PrismaClient } from '../../src/database/generated/prisma/client.ts';
import { defaultOrder } from '../../src/schema/loading/keyset.ts';
import { planPage } from '../../src/schema/loading/pagination.ts';
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

  it.each([
    ['forward', 1],
    ['forward', 3],
    ['backward', 1],
    ['backward', 3],
  ] as const)('has every row exactly once when read %s in pages of %i', async (way, size) => {
    const isForward = way === 'forward';
    const found: number[] = [];
    let cursor: string | null = null;
    for (let more = true; more; ) {
      const args = isForward ? { first: size, after: cursor } : { last: size, before: cursor };
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

  it('has every row exactly once when read by offset', async () => {
    const found: number[] = [];
    for (let offset = 0; offset < 8; offset += 2) {
      const page = await read(list, { first: 2, offset });
      expect(page.pageInfo).toMatchObject({ hasNextPage: offset < 6, hasPreviousPage: offset > 0 });
      found.push(...ids(page));
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

describe('paging through a list that is ordered by time', () => {
  /** Times that are equal once PostgreSQL has rounded them, and times at and beyond the limits of Date. */
  const times = [
    null,
    '2026-01-01 00:00:00.1234Z',
    '2026-01-01 00:00:00.123Z',
    '2026-01-01 00:00:00.1235Z',
  ].concat(
    ['1969-12-31 23:59:59.999Z', '1800-01-01 00:00Z', '0099-01-01 00:00Z', '4714-11-24 00:00Z BC'],
    ['10000-01-01 00:00Z', '275760-09-13 00:00Z', 'infinity', '-infinity'],
  );
  const table = 'OssmDevice';
  const order = defaultOrder(table);
  const inOrder = '"lastVisited" DESC NULLS LAST, id DESC';
  let ownerId: number;
  let created = 0;

  beforeAll(async () => {
    ownerId = (await gateway.database.client.user.create({ data: { username: 'walker' } })).id;
  });

  async function insert(time: string | null): Promise<void> {
    await gateway.database.pool.query(
      `INSERT INTO "${table}" ("ownerId", "bubbleId", chip, "lastVisited") VALUES ($1, $2, '', $3)`,
      [ownerId, `walker-${created++}`, time],
    );
  }

  async function all(): Promise<number[]> {
    const text = `SELECT id FROM "${table}" WHERE "ownerId" = $1 ORDER BY ${inOrder}`;
    return (await gateway.database.pool.query<{ id: number }>(text, [ownerId])).rows.map(({ id }) => id);
  }

  /** Goes through the list page by page, and gives the ids in the order of the list. */
  async function walk(way: 'forward' | 'backward', size: number, between: () => Promise<void>) {
    const found: number[] = [];
    let cursor: string | null = null;
    for (let more = true; more; await between()) {
      const {
        rows: page,
        values,
        connect,
      } = planPage(
        order,
        way === 'forward' ? { first: size, after: cursor } : { last: size, before: cursor },
      );
      const { where: bounds, orderBy = [], take = 0 } = page();
      const where = { AND: [{ ownerId }, ...(bounds ? [bounds] : [])] };
      const select = { id: true, lastVisited: true } as const;
      const rows = await gateway.database.sql.findMany(table, { orderBy, take, where, select }, values);
      const { edges, pageInfo } = connect(rows as { id: number }[], async () => 0);
      const ids = edges.map(({ node }) => node.id);
      if (way === 'forward') found.push(...ids);
      else found.unshift(...ids);
      cursor = way === 'forward' ? pageInfo.endCursor : pageInfo.startCursor;
      more = way === 'forward' ? pageInfo.hasNextPage : pageInfo.hasPreviousPage;
    }
    return found;
  }

  const change = fc.oneof(
    fc.constant(async () => {}),
    fc.constantFrom(...times).map((time) => () => insert(time)),
    fc.nat(20).map((place) => async () => {
      const id = (await all())[place];
      await gateway.database.pool.query(`DELETE FROM "${table}" WHERE id = $1`, [id ?? 0]);
    }),
  );

  it.each(['forward', 'backward'] as const)(
    'gives each remaining row exactly once when read %s, while others are inserted and deleted',
    async (way) => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.constantFrom(...times), { maxLength: 12 }),
          fc.integer({ min: 1, max: 5 }),
          fc.array(change, { maxLength: 12 }),
          async (rows, size, changes) => {
            await gateway.database.pool.query(`DELETE FROM "${table}" WHERE "ownerId" = $1`, [ownerId]);
            for (const time of rows) await insert(time);
            const before = await all();
            const rest = [...changes];
            const found = await walk(way, size, async () => rest.shift()?.());
            const after = await all();
            const stayed = before.filter((id) => after.includes(id));
            expect(new Set(found).size).toBe(found.length);
            expect(found.filter((id) => stayed.includes(id))).toEqual(stayed);
          },
        ),
        { numRuns: 25 },
      );
    },
  );

  it('responds with an error for a cursor at a time that Date cannot represent', async () => {
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
