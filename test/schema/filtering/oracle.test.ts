/**
 * Compares random filters, orders and pages with Prisma's client: the rows must be those that the client finds, in its order.
 *
 * `SEED=…` repeats a run with the same data and filters. With `FUZZ_MINUTES=…` there are 10,000 rows, and the test runs for the
 * given time.
 */

import fc from 'fast-check';
import { parse } from 'graphql';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Viewer } from '../../../src/auth/viewer.ts';
import { createContext } from '../../../src/schema/context.ts';
import { limits } from '../../../src/schema/filter.ts';
import { prepare } from '../../../src/schema/operation.ts';
import { openTestDatabase, type TestDatabase } from '../../support/gateway.ts';

const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31);
const minutes = Number(process.env.FUZZ_MINUTES ?? 0);
const rows = minutes > 0 ? 10_000 : 60;

/** A field by which lists are filtered, with its columns in Prisma's client. */
interface Field {
  readonly type: 'Int' | 'Float' | 'String' | 'DateTime' | 'Boolean';
  /** The value of the field is that of the first column that is not null. */
  readonly columns: readonly string[];
  readonly isNullable?: true;
}

interface Listed {
  readonly fields: Readonly<Record<string, Field>>;
  readonly links: Readonly<Record<string, string>>;
  /** The names of the client's model and of the list. */
  readonly delegate: string;
  readonly list: string;
  visible(userId: number): object;
}

const owned = (ownerId: number) => ({ ownerId });
const time = (column: string): Field => ({ type: 'DateTime', columns: [column] });
const text = (column: string): Field => ({ type: 'String', columns: [column] });
const optional = <F extends Field>(field: F) => ({ ...field, isNullable: true as const });
const id: Field = { type: 'Int', columns: ['id'] };

const types: Readonly<Record<string, Listed>> = {
  DttSession: {
    delegate: 'dttSession',
    list: 'dttSessions',
    visible: owned,
    fields: {
      databaseId: id,
      createdAt: time('createdAt'),
      name: optional(text('name')),
      passed: { type: 'Boolean', columns: ['passed'], isNullable: true },
      trainerId: { type: 'Int', columns: ['trainerId', 'goneTrainerId'] },
      templateId: { type: 'Int', columns: ['templateId', 'goneTemplateId'], isNullable: true },
    },
    links: { template: 'DttTemplate', trainer: 'DttDevice' },
  },
  DttTemplate: {
    delegate: 'dttTemplate',
    list: 'dttTemplates',
    visible: (userId) => ({ libraryEntries: { some: { userId } } }),
    fields: {
      databaseId: id,
      createdAt: time('createdDate'),
      name: text('name'),
      toyId: optional(text('toyId')),
      targetDepth: { type: 'Float', columns: ['targetDepth'] },
      isPublic: { type: 'Boolean', columns: ['isPublic'] },
    },
    links: {},
  },
  DttDevice: {
    delegate: 'dttDevice',
    list: 'dttDevices',
    visible: owned,
    fields: {
      databaseId: id,
      lastVisitedAt: optional(time('lastVisited')),
      apiHits: { type: 'Int', columns: ['apiHits'], isNullable: true },
      serialNumber: optional(text('serialNumber')),
    },
    links: {},
  },
};

/** Few values, so that many rows have the same. */
const values: Readonly<Record<Field['type'], readonly (string | number | boolean)[]>> = {
  Int: [-(2 ** 31), 0, 1, 2, 3, 20, 2 ** 31 - 1],
  Float: [-1.5, 0, 0.1, 50, 1e300],
  String: ['a%b', '\\', '_', 'A', '', 'a', 'ab', 'B', 'é', 'É', '%', '😀', '\uffff'],
  DateTime: ['2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.001Z', '1969-12-31T23:59:59.999Z'].concat(
    '0001-01-01T00:00:00.000Z',
    '9999-12-31T23:59:59.999Z',
  ),
  Boolean: [true, false],
};

/** The times of rows: those of filters, and infinite ones, which no filter can have. */
const rowTimes = [...values.DateTime, 'infinity', '-infinity'];

let database: TestDatabase;
let viewer: Viewer;
let other: number;

beforeAll(async () => {
  database = await openTestDatabase();
  const { client, pool } = database;
  // Only a mirror may have null in some of the columns.
  await pool.query(`INSERT INTO "Mirror" (source) VALUES ('https://example.com')`);
  const create = async (username: string) => (await client.user.create({ data: { username } })).id;
  viewer = { id: await create('viewer'), tokenId: 0, scope: 'activate' };
  other = await create('other');
  const pick = (array: string, salt: number) =>
    `(${array})[1 + abs(hashint4(n * 7 + ${salt})) % cardinality(${array})]`;
  const strings = pick('$2::text[]', 1);
  const times = (salt: number) => pick('$3::timestamptz[]', salt);
  const given = [[viewer.id, other], values.String, rowTimes];
  const owner = '($1::int[])[1 + (n % 5 = 0)::int]';
  const few = Math.ceil(rows / 4);
  await pool.query(
    `INSERT INTO "DttDevice" ("bubbleId", "ownerId", "lastVisited", "apiHits", "serialNumber")
     SELECT n, ${owner}, CASE WHEN n % 3 > 0 THEN ${times(2)} END, nullif(n % 4, 0), CASE WHEN n % 4 > 0 THEN ${strings} END
     FROM generate_series(1, ${few}) n`,
    given,
  );
  await pool.query(
    `INSERT INTO "DttTemplate" ("bubbleId", "ownerId", name, "createdDate", "toyId", "targetDepth", "targetWindow", "isPublic")
     SELECT n, ${owner}, 'a' || ${strings}, ${times(3)}, CASE WHEN n % 4 > 0 THEN ${strings} END, ${pick('$4::float8[]', 4)}, 1, n % 2 = 0
     FROM generate_series(1, ${few}) n`,
    [...given, values.Float],
  );
  // Some templates of the other user are in the viewer's library.
  await pool.query(
    `INSERT INTO "DttLibraryEntry" ("userId", "templateId") SELECT $1, id FROM "DttTemplate" WHERE "ownerId" = $2 AND id % 2 = 0`,
    [viewer.id, other],
  );
  // In batches, so that no statement takes too long.
  while (added < rows) await addSessions(Math.min(rows, 500));
  await pool.query('ANALYZE');
}, 300_000);
afterAll(() => database?.close());

let added = 0;

/** Adds sessions with devices that exist or are deleted, and with templates that are visible, invisible or deleted. */
async function addSessions(count: number): Promise<void> {
  await database.pool.query(
    `INSERT INTO "DttSession" ("bubbleId", "ownerId", name, passed, "createdAt", "trainerId", "goneTrainerId", "templateId", "goneTemplateId")
     SELECT 's' || n, owner, CASE WHEN n % 4 > 0 THEN ($3::text[])[1 + abs(hashint4(n)) % cardinality($3::text[])] END,
       CASE n % 3 WHEN 0 THEN true WHEN 1 THEN false END, ($4::timestamptz[])[1 + abs(hashint4(n + 9)) % cardinality($4::timestamptz[])],
       trainer, CASE WHEN trainer IS NULL THEN n % 30 END,
       template, CASE WHEN template IS NULL AND n % 2 = 0 THEN n % 30 END
     FROM generate_series($5::int, $6::int) n,
       LATERAL (SELECT CASE WHEN n % 6 = 0 THEN $2::int ELSE $1::int END AS owner) o,
       LATERAL (SELECT (SELECT id FROM "DttDevice" WHERE "ownerId" = owner AND n % 5 > 0 ORDER BY id OFFSET n % 7 LIMIT 1) AS trainer) d,
       LATERAL (SELECT (SELECT id FROM "DttTemplate" WHERE n % 4 > 0 ORDER BY id OFFSET n % 11 LIMIT 1) AS template) t`,
    [viewer.id, other, values.String, rowTimes, added + 1, added + count],
  );
  added += count;
}

type Where = Readonly<Record<string, unknown>>;

/** A filter that a client may send, with its equivalent for Prisma's client. */
interface Drawn {
  readonly where: Where;
  readonly meaning: object;
}

/** Conditions that are always true and always false: the meaning of an empty condition varies in Prisma's client. */
const always = { id: { not: -1 } };
const never = { id: -1 };

const operatorsOf = ({ type, isNullable }: Field) =>
  ['eq', ...(type === 'Boolean' ? [] : ['ne', 'in'])]
    .concat(['String', 'Boolean'].includes(type) ? [] : ['lt', 'lte', 'gt', 'gte'])
    .concat(type === 'String' ? ['contains', 'startsWith'] : [])
    .concat(isNullable ? ['isNull'] : []);

function comparisons(name: string, field: Field): fc.Arbitrary<Drawn> {
  const one = fc.constantFrom(...values[field.type]);
  const single = fc
    .constantFrom(...operatorsOf(field))
    .chain((operator) =>
      (operator === 'in' ? fc.array(one, { maxLength: 4 }) : operator === 'isNull' ? fc.boolean() : one).map(
        (value) => [operator, value] as const,
      ),
    );
  return fc
    .uniqueArray(single, { minLength: 0, maxLength: 2, selector: ([operator]) => operator })
    .map((drawn) => ({
      where: { [name]: Object.fromEntries(drawn) },
      meaning: and(drawn.map(([operator, value]) => meaningOf(field, operator, value))),
    }));
}

function meaningOf({ columns, isNullable }: Field, operator: string, value: unknown): object {
  if (operator === 'isNull') {
    const nulls = columns.map((column) => ({ [column]: null }));
    return value ? { AND: nulls } : { OR: columns.map((column) => ({ [column]: { not: null } })) };
  }
  // Prisma's client does not accept null for a column that is not nullable.
  const guards = (column: string) => (isNullable || columns.length > 1 ? [{ [column]: { not: null } }] : []);
  return {
    OR: columns.map((column, index) => ({
      AND: [
        ...columns.slice(0, index).map((earlier) => ({ [earlier]: null })),
        ...guards(column),
        { [column]: compared(operator, value) },
      ],
    })),
  };
}

function compared(operator: string, value: unknown): object {
  if (operator === 'eq') return { equals: value };
  if (operator === 'ne') return { not: value };
  if (operator === 'contains' || operator === 'startsWith')
    return {
      [operator]: String(value).replace(/[\\%_]/g, (character) => `\\${character}`),
      mode: 'insensitive',
    };
  return { [operator]: value };
}

const and = (all: readonly object[]) => (all.length > 0 ? { AND: all } : always);

function filters(typeName: string, depth: number): fc.Arbitrary<Drawn> {
  const type = typeOf(typeName);
  const leaf = fc.oneof(...Object.entries(type.fields).map(([name, field]) => comparisons(name, field)));
  if (depth === 0) return leaf;
  const deeper = filters(typeName, depth - 1);
  const several = fc.array(deeper, { maxLength: 3 });
  const linked = Object.entries(type.links).map(([name, target]) =>
    fc
      .option(filters(target, depth - 1), { nil: { where: {}, meaning: always } })
      .map(({ where, meaning }) => ({
        where: { [name]: where },
        meaning: { [name]: { AND: [typeOf(target).visible(viewer.id), meaning] } },
      })),
  );
  return fc
    .oneof(
      { weight: 3, arbitrary: leaf },
      several.map((all) => ({
        where: { and: all.map(({ where }) => where) },
        meaning: and(meaningsOf(all)),
      })),
      several.map((some) => ({
        where: { or: some.map(({ where }) => where) },
        meaning: some.length > 0 ? { OR: meaningsOf(some) } : never,
      })),
      deeper.map(({ where, meaning }) => ({ where: { not: where }, meaning: { NOT: meaning } })),
      fc.tuple(leaf, deeper).map(([one, another]) => ({
        where: { ...one.where, and: [another.where] },
        meaning: { AND: [one.meaning, another.meaning] },
      })),
      ...linked,
    )
    .filter(hasFewJoins);
}

/** Lists reject filters with too many joins. A template and the library that it is in are two. */
const hasFewJoins = ({ where }: Drawn): boolean =>
  2 * (JSON.stringify(where).match(/"(template|trainer)":/g) ?? []).length <= limits.joins;

const meaningsOf = (all: readonly Drawn[]) => all.map(({ meaning }) => meaning);

interface DrawnOrder {
  readonly orderBy: object[] | null;
  readonly meaning: object[];
}

const usual: Readonly<Record<string, object[]>> = {
  DttSession: [{ createdAt: 'desc' }, { id: 'desc' }],
  DttTemplate: [{ createdDate: 'desc' }, { id: 'desc' }],
  DttDevice: [{ lastVisited: { sort: 'desc', nulls: 'last' } }, { id: 'desc' }],
};

function orders(typeName: string): fc.Arbitrary<DrawnOrder> {
  // Lists cannot be sorted by id.
  const fields = Object.entries(typeOf(typeName).fields).filter(
    ([name, { columns }]) => columns.length === 1 && name !== 'databaseId',
  );
  const key = fc.record({ field: fc.constantFrom(...fields), direction: fc.constantFrom('ASC', 'DESC') });
  return fc.uniqueArray(key, { maxLength: 3, selector: ({ field: [name] }) => name }).map((keys) => ({
    orderBy: keys.map(({ field: [name], direction }) => ({
      field: name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase(),
      direction,
    })),
    meaning:
      keys.length === 0
        ? (usual[typeName] ?? [])
        : [
            ...keys.map(({ field: [, { columns, isNullable }], direction }) => {
              const sort = direction.toLowerCase();
              return { [columns[0] ?? '']: isNullable ? { sort, nulls: 'last' } : sort };
            }),
            { id: keys.at(-1)?.direction.toLowerCase() },
          ],
  }));
}

function typeOf(name: string): Listed {
  return types[name] ?? expect.fail(`there is no ${name}`);
}

interface Delegate {
  findMany(query: object): Promise<{ id: number }[]>;
}

/** The ids that Prisma's client finds. All of its delegates have this method, but no common type. */
async function expected(
  typeName: string,
  meaning: object,
  orderBy: object[],
  tied: object = {},
): Promise<number[]> {
  const { delegate, visible } = typeOf(typeName);
  const model = (database.client as unknown as Record<string, Delegate>)[delegate];
  const where = { AND: [visible(viewer.id), tied, meaning] };
  return ((await model?.findMany({ where, orderBy, select: { id: true } })) ?? []).map((row) => row.id);
}

interface Page {
  readonly totalCount: number;
  readonly nodes: { readonly databaseId: number }[];
  readonly edges: { readonly cursor: string; readonly node: { readonly databaseId: number } }[];
  readonly pageInfo: { readonly hasNextPage: boolean; readonly hasPreviousPage: boolean } & {
    readonly startCursor: string | null;
    readonly endCursor: string | null;
  };
}

const page =
  'totalCount nodes { databaseId } edges { cursor node { databaseId } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor }';
const operations = new Map(
  Object.entries(types).map(([name, { list }]) => [
    name,
    prepare(
      parse(`query ($where: ${name}Filter, $orderBy: [${name}Order!], $first: Int, $last: Int, $after: String, $before: String, $offset: Int) {
        ${list}(where: $where, orderBy: $orderBy, first: $first, last: $last, after: $after, before: $before, offset: $offset) { ${page} } }`),
    ),
  ]),
);

async function ask(typeName: string, variables: Where): Promise<Page> {
  const context = createContext(database.sql, viewer, undefined);
  const result = await operations.get(typeName)?.run(variables, context);
  expect(result?.errors).toBeUndefined();
  // The type follows from the selection of the operation.
  const found = result?.data?.[typeOf(typeName).list] as Page;
  const { nodes, edges, pageInfo } = found;
  expect(edges.map(({ node }) => node)).toEqual(nodes);
  const ends = { startCursor: edges[0]?.cursor ?? null, endCursor: edges.at(-1)?.cursor ?? null };
  expect(pageInfo).toMatchObject(ends);
  return found;
}

const idsOf = ({ nodes }: Page) => nodes.map(({ databaseId }) => databaseId);

interface Walk {
  readonly way: 'forward' | 'backward';
  readonly size: number;
}

/** Reads the list page by page. @returns the ids in the order of the list. */
async function walk(
  typeName: string,
  asked: Where,
  { way, size }: Walk,
  between: (page: Page) => Promise<void>,
): Promise<number[]> {
  const found: number[] = [];
  let cursor: string | null = null;
  for (let more = true; more; ) {
    const here: Page = await ask(typeName, {
      ...asked,
      ...(way === 'forward' ? { first: size, after: cursor } : { first: null, last: size, before: cursor }),
    });
    const { hasNextPage, hasPreviousPage, startCursor, endCursor } = here.pageInfo;
    if (way === 'forward') found.push(...idsOf(here));
    else found.unshift(...idsOf(here));
    expect(here.nodes.length > 0 || found.length === 0).toBe(true);
    cursor = way === 'forward' ? endCursor : startCursor;
    more = way === 'forward' ? hasNextPage : hasPreviousPage;
    if (more) await between(here);
  }
  return found;
}

const walks = fc.record({
  way: fc.constantFrom<'forward' | 'backward'>('forward', 'backward'),
  size: minutes > 0 ? fc.integer({ min: 30, max: 100 }) : fc.integer({ min: 5, max: 30 }),
});

/** Runs the property with random values: a few times in the suite, or for the given minutes. */
async function forAWhile<Drawn>(arbitrary: fc.Arbitrary<Drawn>, check: (drawn: Drawn) => Promise<void>) {
  const end = Date.now() + (minutes * 60_000) / 5;
  for (let round = 0; round === 0 || Date.now() < end; round++)
    await fc.assert(fc.asyncProperty(arbitrary, check), {
      seed: seed + round,
      numRuns: minutes > 0 ? 5 : 15,
    });
}

const timeout = minutes * 60_000 + 60_000;

/** The most items that a page may have. */
const mostItems = 100;

/** Reads between two rows from either end, and beyond the ends of the list, where there is nothing but the number of all rows. */
async function checkBounds(
  name: string,
  asked: Where,
  all: readonly number[],
  places: readonly [number, number],
): Promise<void> {
  const { edges, pageInfo } = await ask(name, { ...asked, first: mostItems });
  expect(pageInfo).toMatchObject({ hasNextPage: all.length > mostItems, hasPreviousPage: false });
  const [from, to] = places.map((place) => place % Math.max(edges.length, 1)) as [number, number];
  const between = { ...asked, after: edges[from]?.cursor, before: edges[to]?.cursor };
  const right = all.slice(from + 1, to);
  expect(idsOf(await ask(name, { ...between, first: 2 }))).toEqual(right.slice(0, 2));
  expect(idsOf(await ask(name, { ...between, last: 2 }))).toEqual(right.slice(-2));
  for (const beyond of [
    { before: pageInfo.startCursor },
    { before: pageInfo.startCursor, last: 3 },
    { offset: all.length },
    { offset: 2 ** 31 - 1 },
    ...(pageInfo.hasNextPage ? [] : [{ after: pageInfo.endCursor }]),
  ])
    expect(await ask(name, { ...asked, ...beyond })).toMatchObject({ totalCount: all.length, nodes: [] });
}

it.each(Object.keys(types))('each comparison of each field of %s has its meaning', async (name) => {
  for (const [fieldName, field] of Object.entries(typeOf(name).fields))
    for (const operator of operatorsOf(field))
      for (const one of operator === 'isNull' ? [true, false] : values[field.type].slice(0, 4)) {
        const value = operator === 'in' ? [one] : one;
        const all = await expected(name, meaningOf(field, operator, value), usual[name] ?? []);
        const where = { [fieldName]: { [operator]: value } };
        expect(idsOf(await ask(name, { where, first: mostItems })), JSON.stringify(where)).toEqual(all);
      }
});

it.each(Object.keys(types))(
  `pages of %s have the rows that Prisma’s client finds, in the same order (seed ${seed})`,
  async (name) => {
    const bounds = fc.tuple(fc.nat(mostItems - 1), fc.nat(mostItems - 1));
    const drawing = fc.tuple(filters(name, 3), orders(name), walks, bounds);
    await forAWhile(drawing, async ([drawn, order, way, places]) => {
      const all = await expected(name, drawn.meaning, order.meaning);
      const asked = { where: drawn.where, orderBy: order.orderBy };
      const found = await walk(name, asked, way, async ({ totalCount }) => {
        expect(totalCount).toBe(all.length);
      });
      expect(found).toEqual(all);
      const middle = await ask(name, { ...asked, offset: 3, first: 2 });
      expect(idsOf(middle)).toEqual(all.slice(3, 5));
      await checkBounds(name, asked, all, places);
    });
  },
  timeout,
);

it(
  'filtered and sorted lists of records within another list have the rows of each record',
  async () => {
    const beneath = prepare(
      parse(`query ($where: DttSessionFilter, $orderBy: [DttSessionOrder!]) {
        dttDevices(first: 8) { nodes { databaseId
          newest: sessions(first: 5, where: $where, orderBy: $orderBy) { ${page} }
          oldest: sessions(last: 1, where: $where, orderBy: $orderBy) { ${page} }
          second: sessions(first: 1, offset: 1, where: $where, orderBy: $orderBy) { ${page} } } } }`),
    );
    await forAWhile(fc.tuple(filters('DttSession', 2), orders('DttSession')), async ([drawn, order]) => {
      const context = createContext(database.sql, viewer, undefined);
      const result = await beneath?.run({ where: drawn.where, orderBy: order.orderBy }, context);
      expect(result?.errors).toBeUndefined();
      // The type follows from the selection of the operation.
      const devices = result?.data?.dttDevices as {
        nodes: ({ databaseId: number } & Record<'newest' | 'oldest' | 'second', Page>)[];
      };
      for (const { databaseId, newest, oldest, second } of devices.nodes) {
        const all = await expected('DttSession', drawn.meaning, order.meaning, { trainerId: databaseId });
        for (const [sessions, ids, hasNextPage, hasPreviousPage] of [
          [newest, all.slice(0, 5), all.length > 5, false],
          [oldest, all.slice(-1), false, all.length > 1],
          [second, all.slice(1, 2), all.length > 2, true],
        ] as const) {
          expect([sessions.totalCount, idsOf(sessions)]).toEqual([all.length, ids]);
          expect(sessions.pageInfo).toMatchObject({ hasNextPage, hasPreviousPage });
        }
      }
    });
  },
  timeout,
);
