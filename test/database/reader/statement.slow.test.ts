/**
 * The SQL of the gateway's reads: random queries over edge-case data return the same as Prisma's client.
 *
 * `SEED=…` repeats the data and the queries of a run; `FUZZ_MINUTES=…` sets how long it takes.
 */

import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { getDatamodel } from '../../../src/database/generated/pothos.ts';
import * as enums from '../../../src/database/generated/prisma/enums.ts';
import { type ModelName, type SelectQuery, Slot } from '../../../src/database/reader/query.ts';
import { createSql } from '../../../src/database/reader/sql.ts';
import { selectStatement } from '../../../src/database/reader/statement.ts';
import { openTestDatabase, type TestDatabase } from '../../support/gateway.ts';

const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31);
const minutes = Number(process.env.FUZZ_MINUTES ?? 0);

interface Field {
  readonly name: string;
  readonly type: string;
  readonly kind: 'scalar' | 'enum' | 'object';
  readonly isList: boolean;
  readonly isRequired: boolean;
  readonly isId: boolean;
  readonly isUnique: boolean;
  readonly relationFromFields?: readonly string[];
}

interface DataModel {
  readonly fields: readonly Field[];
  readonly primaryKey: { readonly fields: readonly string[] } | null;
}

// What Prisma generates has exactly these models.
const models = getDatamodel().datamodel.models as unknown as Readonly<Record<ModelName, DataModel>>;
const names = Object.keys(models) as ModelName[];
const modelOf = (name: string) => models[name as ModelName];
/** How long, in milliseconds, queries of a model are generated and compared. */
const share = minutes > 0 ? (minutes * 60_000) / (names.length + 1) : 400;

/** The types of columns that the module reads. */
const readTypes = ['String', 'Int', 'Float', 'Boolean', 'DateTime', ...Object.keys(enums)];
const columnsOf = (model: string) => modelOf(model).fields.filter(({ type }) => readTypes.includes(type));
const hasId = (model: string) => modelOf(model).fields.some(({ name }) => name === 'id');
/** The relations whose key is an id. Queries need no others. */
const relationsOf = (model: string) =>
  modelOf(model).fields.filter(
    ({ kind, type, relationFromFields = [] }) =>
      kind === 'object' && hasId(relationFromFields.length > 0 ? type : model),
  );
const listsOf = (model: string) => relationsOf(model).filter(({ isList }) => isList);
const keyOf = (model: string) =>
  modelOf(model).primaryKey?.fields ??
  modelOf(model)
    .fields.filter(({ isId }) => isId)
    .map(({ name }) => name);

/** Edge cases that could change on the way between a column and the program, written as PostgreSQL reads them. */
const edgeCases: Readonly<Record<string, readonly string[]>> = {
  String: [
    '',
    ' ',
    'a',
    'A',
    'e\u0301',
    '\u00e9',
    '\ufffd',
    '\uffff',
    '😀',
    '\u0001\u007f\u2028',
    `"'\\\\n`,
    '{1,NULL}',
    'null',
  ].concat('x'.repeat(20_000)),
  Int: ['0', '1', '-1', '2', '3', '2147483647', '-2147483648'],
  Float: ['0', '-0', 'NaN', 'Infinity', '-Infinity', '5e-324', '-5e-324', '2.2250738585072014e-308'].concat(
    '1.7976931348623157e308',
    '-1.7976931348623157e308',
    '0.30000000000000004',
    '1e21',
    '9007199254740993',
  ),
  Boolean: ['true', 'false'],
  DateTime: ['2026-01-01 00:00:00.123Z', '2026-01-01 00:00:00.1234Z', '2026-01-01 00:00:00.123499Z']
    .concat(
      '2026-01-01 00:00:00.124Z',
      '2026-01-01 02:00:00.1236+02',
      '2026-07-01 12:00+02',
      '1970-01-01 00:00Z',
    )
    .concat('1969-12-31 23:59:59.999Z', '1800-01-01 00:00Z', '0001-01-01 00:00Z', '9999-12-31 23:59:59.999Z'),
  BigInt: ['0', '9223372036854775807', '-9223372036854775808'],
  Bytes: ['\\x', '\\x00', '\\xff00'],
};
for (const [name, values] of Object.entries(enums)) Object.assign(edgeCases, { [name]: Object.keys(values) });

/** The value for a condition, from the text that PostgreSQL reads. */
function fromText(type: string, text: string): unknown {
  if (type === 'DateTime')
    return new Date(
      text
        .replace(/(\.\d{3})\d*/, '$1')
        .replace(' ', 'T')
        .replace(/\+02$/, '+02:00'),
    );
  if (type === 'Int' || type === 'Float') return Number(text);
  return type === 'Boolean' ? text === 'true' : text;
}

/**
 * Drops the checks, so that values are read which they would reject, and the keys with two columns, since rows are first
 * inserted without regard to the second column.
 */
const withoutChecks = `
  DO $$ DECLARE each record; BEGIN
    FOR each IN SELECT conrelid::regclass AS name, conname FROM pg_constraint
      WHERE connamespace = 'public'::regnamespace AND (contype = 'c' OR contype = 'f' AND cardinality(conkey) > 1) LOOP
      EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', each.name, each.conname);
    END LOOP;
  END $$;
  DROP TRIGGER only_for_ultra ON "ApiToken"`;

/** Fills each table with rows of such values and of references, of which many are equal and many are null. */
async function fill({ pool }: TestDatabase): Promise<void> {
  await pool.query(withoutChecks);
  const rows = 16;
  // In this order, the rows that a row has to refer to exist already. Only a mirror may have null in some of the columns.
  const order = ['Mirror', 'User', 'DttDevice', 'DttTemplate', 'LockTemplate', 'DttSession', 'LockSession'];
  const rest = names.filter((name) => !order.includes(name));
  for (const model of [...order, ...rest] as ModelName[]) {
    const keys = new Map(
      relationsOf(model).flatMap(({ type, relationFromFields = [] }) =>
        relationFromFields.slice(0, 1).map((name) => [name, type]),
      ),
    );
    const columns = modelOf(model).fields.filter(
      ({ kind, name, isId }) => kind !== 'object' && !(isId && name === 'id') && name !== 'activeTemplateId',
    );
    const row = fc.tuple(
      ...columns.map(({ name, type, isRequired, isId, isUnique }): fc.Arbitrary<string | null> => {
        const known = fc.constantFrom('1', '2', '3', '4', '5', '6');
        const some = fc.constantFrom(...(edgeCases[type] ?? []).filter((text) => !isId || text.length < 200));
        // Rows with the name of another are skipped, so there have to be many names.
        const distinct = fc.tuple(some, fc.nat(99)).map(([text, number]) => `${text}${number}`);
        const value = keys.has(name) ? known : type === 'String' && (isId || isUnique) ? distinct : some;
        return isRequired ? value : fc.option(value, { freq: 2 });
      }),
    );
    const places = columns.map(({ name }, at) =>
      keys.has(name)
        ? `(SELECT id FROM "${keys.get(name)}" ORDER BY id OFFSET $${at + 1} - 1 LIMIT 1)`
        : `$${at + 1}`,
    );
    for (const values of fc.sample(row, { numRuns: rows, seed }))
      await pool.query(
        `INSERT INTO "${model}" (${columns.map(({ name }) => `"${name}"`)}) VALUES (${places})
         ON CONFLICT DO NOTHING`,
        values,
      );
  }
  await pool.query(`
    UPDATE "DttSession" AS s SET "trainerId" =
      (SELECT id FROM "DttDevice" AS d WHERE d."ownerId" = s."ownerId" ORDER BY id OFFSET s.id % 2 LIMIT 1) WHERE "trainerId" > 0;
    UPDATE "LockSession" AS s SET "templateId" =
      (SELECT id FROM "LockTemplate" AS t WHERE t."ownerId" = s."ownerId" ORDER BY id OFFSET s.id % 2 LIMIT 1) WHERE "templateId" > 0;
    UPDATE "User" SET "activeTemplateId" = (SELECT max(id) FROM "DttTemplate" WHERE id <= "User".id) WHERE id % 3 > 0`);
}

let database: TestDatabase;

beforeAll(async () => {
  database = await openTestDatabase();
  await fill(database);
});
afterAll(() => database?.close());

/** Values to compare a column with, which are among those that rows have. */
function valuesOf({ type }: Field): fc.Arbitrary<unknown> {
  // Prisma's client makes null of infinity and NaN, and a decimal that is too large of the largest numbers.
  const beyondPrisma = /Infinity|NaN|e308$/;
  const texts = (edgeCases[type] ?? []).filter((text) => !(type === 'Float' && beyondPrisma.test(text)));
  return fc.constantFrom(...texts).map((text) => fromText(type, text));
}

/** Parts of the texts in the data, and characters that have a meaning in LIKE. */
const patterns = fc
  .tuple(
    fc.constantFrom('contains', 'startsWith'),
    fc.constantFrom(
      '',
      'a',
      'A',
      'É',
      'E\u0301',
      'x',
      '1',
      '%',
      '_',
      '\\%',
      '\\_1',
      '%1',
      '\\\\',
      '"',
      '😀',
      'ULL',
    ),
  )
  .map(([operator, value]) => ({ [operator]: value, mode: 'insensitive' }));

function comparisons(field: Field): fc.Arbitrary<object> {
  const { name, type, isRequired } = field;
  const values = valuesOf(field);
  const ordered = ['String', 'Int', 'Float', 'DateTime'].includes(type);
  const operators = fc.constantFrom('lt', 'lte', 'gt', 'gte');
  // In a list with fractions Prisma's client loses a whole number of more than 53 bits.
  const members = values.filter((value) => !Number.isInteger(value) || Number.isSafeInteger(value));
  const wanted: fc.Arbitrary<unknown> = fc.oneof(
    values,
    // Prisma's client compares only optional columns with null.
    ...(isRequired ? [] : [fc.constant(null), fc.constant({ not: null })]),
    ...(type === 'Boolean' ? [] : [fc.array(members, { maxLength: 4 }).map((list) => ({ in: list }))]),
    ...(ordered ? [fc.dictionary(operators, values, { minKeys: 1, maxKeys: 2, noNullPrototype: true })] : []),
    fc.constantFrom('equals', 'not').chain((operator) => values.map((value) => ({ [operator]: value }))),
    ...(type === 'String' ? [patterns] : []),
  );
  return wanted.map((value) => ({ [name]: value }));
}

function conditions(model: string, depth: number): fc.Arbitrary<object> {
  const leaf = fc.oneof(...columnsOf(model).map(comparisons));
  if (depth === 0) return leaf;
  const deeper = conditions(model, depth - 1);
  const several = fc.array(deeper, { minLength: 1, maxLength: 3 });
  const related = relationsOf(model).map(({ name, type, isList }) =>
    conditions(type, depth - 1).map((where) => ({ [name]: isList ? { some: where } : where })),
  );
  return fc.oneof(
    leaf,
    several.map((all) => ({ AND: all })),
    several.map((some) => ({ OR: some })),
    leaf.map((other) => ({ NOT: other })),
    decided(model, depth - 1).map((other) => ({ NOT: other })),
    // Several columns in one condition, and a disjunction beside others.
    fc.tuple(deeper, several, leaf).map(([one, some, other]) => ({ ...one, OR: some, ...other })),
    ...related,
  );
}

/**
 * Conditions that are true or false, and never null. For a related row, Prisma negates the condition on that row, and not
 * whether there is a row that meets it. Both are the same where nothing is null.
 */
function decided(model: string, depth: number): fc.Arbitrary<object> {
  const leaf = fc.oneof(
    ...columnsOf(model).map((field) =>
      comparisons(field).map((wanted) =>
        field.isRequired ? wanted : { AND: [{ [field.name]: { not: null } }, wanted] },
      ),
    ),
  );
  if (depth <= 0) return leaf;
  const deeper = decided(model, depth - 1);
  const several = fc.array(deeper, { minLength: 1, maxLength: 3 });
  return fc.oneof(
    leaf,
    several.map((all) => ({ AND: all })),
    several.map((some) => ({ OR: some })),
    deeper.map((other) => ({ NOT: other })),
    ...relationsOf(model).map(({ name, type, isList }) =>
      decided(type, depth - 1).map((where) => ({ [name]: isList ? { some: where } : where })),
    ),
  );
}

/** An order by some columns, and then by those that identify a row. */
function orders(model: string): fc.Arbitrary<NonNullable<SelectQuery['orderBy']>> {
  const direction = fc.constantFrom<'asc' | 'desc'>('asc', 'desc');
  const nulls = fc.constantFrom<'first' | 'last'>('first', 'last');
  const by = columnsOf(model).map(({ name, isRequired }) =>
    (isRequired ? direction : fc.oneof(direction, fc.record({ sort: direction, nulls }))).map((how) => ({
      [name]: how,
    })),
  );
  const ties = direction.map((how) => keyOf(model).map((name) => ({ [name]: how })));
  return fc.tuple(fc.array(fc.oneof(...by), { maxLength: 2 }), ties).map((parts) => parts.flat());
}

function queries(model: string, depth: number): fc.Arbitrary<SelectQuery> {
  const columns = fc
    .subarray(
      columnsOf(model).map(({ name }) => name),
      { minLength: 1 },
    )
    .map((chosen) => Object.fromEntries(chosen.map((name) => [name, true as const])));
  const lists = listsOf(model);
  const nested =
    depth === 0 || lists.length === 0
      ? fc.constant({})
      : fc
          .subarray(lists, { maxLength: Math.min(2, lists.length) })
          .chain((chosen) =>
            fc.tuple(
              ...chosen.map(({ name, type }) => queries(type, depth - 1).map((query) => [name, query])),
            ),
          )
          .map((entries) => Object.fromEntries(entries));
  const countOf = ({ name, type }: Field) =>
    fc
      .oneof(
        fc.constant(true),
        conditions(type, 1).map((where) => ({ where })),
      )
      .map((how) => [name, how]);
  const counted =
    lists.length === 0
      ? fc.constant({})
      : fc.option(
          fc
            .subarray(lists, { minLength: 1, maxLength: Math.min(2, lists.length) })
            .chain((chosen) => fc.tuple(...chosen.map(countOf)))
            .map((entries) => ({ _count: { select: Object.fromEntries(entries) } })),
          { nil: {} },
        );
  return fc.record(
    {
      select: fc.tuple(columns, nested, counted).map((parts) => Object.assign({}, ...parts)),
      // Most queries should find rows, so that there is something to compare.
      where: fc.oneof(
        { weight: 2, arbitrary: fc.constant({}) },
        { weight: 2, arbitrary: conditions(model, 0) },
        { weight: 1, arbitrary: conditions(model, 2) },
      ),
      orderBy: orders(model),
      take: fc.integer({ min: 0, max: 6 }),
      skip: fc.oneof(fc.integer({ min: 0, max: 4 }), fc.constant(2 ** 31 - 1)),
    },
    { requiredKeys: ['select', 'orderBy'] },
  );
}

interface Delegate {
  findMany(query: object): Promise<object[]>;
  count(query: object): Promise<number>;
}

/** Prisma's client for a model. Its delegates all have these methods, but no type of their own in common. */
function prisma(model: string): Delegate {
  const name = `${model[0]?.toLowerCase()}${model.slice(1)}`;
  const { [name]: found } = database.client as unknown as Record<string, Delegate>;
  if (!found) throw new Error(`Prisma's client has no ${name}`);
  return found;
}

/** Generates and checks values for the time that each model has. */
async function forAWhile<Drawn>(arbitrary: fc.Arbitrary<Drawn>, check: (drawn: Drawn) => Promise<unknown>) {
  const end = Date.now() + share;
  for (let round = 0; round === 0 || Date.now() < end; round++)
    await fc.assert(
      fc.asyncProperty(arbitrary, async (drawn) => {
        await check(drawn);
      }),
      { seed: seed + round, numRuns: 3 },
    );
}

interface Taken {
  /** Values of the same kind can replace each other. */
  readonly kind: string;
  readonly value: unknown;
}

/** The query with slots in the places of its values. */
function slotted(query: SelectQuery): { template: SelectQuery; values: Map<Slot, Taken> } {
  const values = new Map<Slot, Taken>();
  const slot = (kind: string, value: unknown): Slot => {
    const made = new Slot(`${kind} ${values.size}`);
    values.set(made, { kind, value });
    return made;
  };
  const each = (record: object, change: (value: unknown, name: string) => unknown) =>
    Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value, name)]));
  const ofQuery = (given: object): object =>
    each(given, (value, name) => {
      if (name === 'take' || name === 'skip') return slot(name, value);
      if (name === 'where') return ofCondition(value, '');
      return name === 'select' ? each(value as object, (wanted) => ofSelected(wanted)) : value;
    });
  // Selected lists and counts are queries themselves.
  const ofSelected = (wanted: unknown) => (typeof wanted === 'object' ? ofQuery(wanted ?? {}) : wanted);
  /** @param column is what is compared, whatever operators lead to its value. */
  const ofCondition = (wanted: unknown, column: string): unknown => {
    if (Array.isArray(wanted)) return wanted.map((part) => ofCondition(part, column));
    if (wanted === null) return null;
    if (typeof wanted !== 'object' || wanted instanceof Date) return slot(column, wanted);
    // The form of a pattern depends on its value.
    if ('mode' in wanted) return wanted;
    return each(wanted, (value, name) =>
      name === 'in'
        ? slot(`several of ${column}`, value)
        : ofCondition(value, operators.has(name) ? column : name),
    );
  };
  return { template: ofQuery(query) as SelectQuery, values };
}

const operators = new Set(['equals', 'not', 'lt', 'lte', 'gt', 'gte', 'AND', 'OR', 'NOT']);

/** The values, each moved to the next slot of its kind. */
function rotated(values: ReadonlyMap<Slot, Taken>): Map<Slot, Taken> {
  return new Map(
    [...values].map(([slot, { kind }]) => {
      const alike = [...values].filter(([, other]) => other.kind === kind);
      const next = alike[(alike.findIndex(([other]) => other === slot) + 1) % alike.length]?.[1];
      const { value } = next ?? { value: undefined };
      return [slot, { kind, value: kind === 'take' ? Number(value) + 1 : value }];
    }),
  );
}

/** The query with these values in its slots. */
function filledWith<Query>(query: Query, given: Readonly<Record<string, unknown>>): Query;
function filledWith(query: unknown, given: Readonly<Record<string, unknown>>): unknown {
  if (query instanceof Slot) return given[query.name];
  if (typeof query !== 'object' || query === null || query instanceof Date) return query;
  if (Array.isArray(query)) return query.map((each) => filledWith(each, given));
  return Object.fromEntries(Object.entries(query).map(([name, each]) => [name, filledWith(each, given)]));
}

/** Times that Prisma's client changes or does not support: as they are written, and as they have to be returned. */
const times: readonly [string, Date | number][] = [
  ['2026-01-01 00:00:00.1235Z', new Date('2026-01-01T00:00:00.124Z')],
  ['2026-01-01 00:00:00.123499Z', new Date('2026-01-01T00:00:00.123Z')],
  ['2026-12-31 23:59:59.999999Z', new Date('2027-01-01T00:00:00.000Z')],
  ['1800-01-01 00:00:00.001Z', new Date('1800-01-01T00:00:00.001Z')],
  ['0099-12-31 23:59:59.999Z', new Date('0099-12-31T23:59:59.999Z')],
  ['0001-01-01 00:00Z BC', new Date('0000-01-01T00:00:00.000Z')],
  ['4714-11-24 00:00Z BC', new Date('-004713-11-24T00:00:00.000Z')],
  ['10000-01-01 00:00Z', new Date('+010000-01-01T00:00:00.000Z')],
  ['275760-09-13 00:00Z', new Date(8.64e15)],
  ['infinity', Number.POSITIVE_INFINITY],
  ['-infinity', Number.NEGATIVE_INFINITY],
];

const floats = [-0, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.MIN_VALUE].concat([
  Number.MAX_VALUE,
  -Number.MAX_VALUE,
  Number.EPSILON,
  0.1 + 0.2,
  Number.MAX_SAFE_INTEGER,
  1e21,
]);

const id = { id: true };
/** Queries that are not supported, since their SQL would be wrong, or would mean something else than for Prisma. */
const rejected: readonly [string, object, string][] = [
  ['a column that does not exist', { select: { secret: true } }, 'DttDevice has no field secret'],
  [
    'a column that does not exist and is not selected',
    { select: { name: false } },
    'DttDevice has no field name',
  ],
  ['an empty selection', { select: {} }, 'nothing is selected of DttDevice'],
  ['a column that is not selected', { select: { bubbleId: false } }, 'DttDevice.bubbleId is no list of rows'],
  ['the rows of a list without a select', { select: { sessions: true } }, 'DttDevice.sessions is no column'],
  ['a list with an include', { select: { sessions: { include: {} } } }, 'sessions takes true, or a select'],
  ['a single row', { select: { owner: { select: id } } }, 'DttDevice.owner is no list of rows'],
  ['rows of a column', { select: { _count: { select: { name: {} } } } }, 'DttDevice has no field name'],
  ['a count of single rows', { select: { _count: { select: { owner: true } } } }, 'owner is no list of rows'],
  ['a count of everything', { select: { _count: true } }, '_count takes true, or a select'],
  [
    'a count with more than a condition',
    { select: { _count: { select: { sessions: { take: 1 } } } } },
    'takes where and nothing',
  ],
  [
    'bytes',
    { select: id, where: { owner: { tokens: { some: { digest: Buffer.of(1) } } } } },
    'ApiToken.digest is of type Bytes',
  ],
  ['a distinct read', { select: id, distinct: ['id'] }, 'distinct is not a part of a query'],
  ['a cursor', { select: id, cursor: { id: 1 } }, 'cursor is not a part of a query'],
  ['a take backwards', { select: id, take: -1 }, 'take is a number of rows, and not -1'],
  ['half a row', { select: id, take: 1.5 }, 'take is a number of rows, and not 1.5'],
  ['a skip backwards', { select: id, skip: -1 }, 'skip is a number of rows, and not -1'],
  ['an order by a relation', { select: id, orderBy: { owner: 'asc' } }, 'DttDevice.owner is no column'],
  ['an unknown order', { select: id, orderBy: { id: 'up' } }, '"up" is not an order'],
  [
    'an unknown place for nulls',
    { select: id, orderBy: { lastVisited: { sort: 'asc', nulls: 'no' } } },
    'is not an order',
  ],
  ['an unknown operator', { select: id, where: { id: { like: '1' } } }, 'like is not an operator'],
  [
    'several negations',
    { select: id, where: { NOT: [{ id: 1 }] } },
    'NOT takes conditions that say something',
  ],
  ['a negation of nothing', { select: id, where: { NOT: {} } }, 'NOT takes conditions that say something'],
  [
    'a negation of undefined',
    { select: id, where: { id: { not: undefined } } },
    'undefined cannot be compared with',
  ],
  [
    'equality with null',
    { select: id, where: { serialNumber: { equals: null } } },
    'null cannot be compared with',
  ],
  [
    'a pattern that regards case',
    { select: id, where: { bubbleId: { contains: 'a' } } },
    'contains is not an operator',
  ],
  [
    'a pattern in an unknown mode',
    { select: id, where: { bubbleId: { contains: 'a', mode: 'default' } } },
    'mode takes insensitive',
  ],
  [
    'a mode without a pattern',
    { select: id, where: { bubbleId: { mode: 'insensitive' } } },
    'mode takes insensitive',
  ],
  [
    'equality without regard to case',
    { select: id, where: { bubbleId: { equals: 'a', mode: 'insensitive' } } },
    'mode takes insensitive',
  ],
  [
    'two patterns at once',
    { select: id, where: { bubbleId: { contains: 'a', startsWith: 'b', mode: 'insensitive' } } },
    'mode takes insensitive',
  ],
  [
    'NUL in a pattern',
    { select: id, where: { bubbleId: { contains: 'a\0', mode: 'insensitive' } } },
    'is nothing that a column can hold',
  ],
  ['a comparison with nothing', { select: id, where: { id: {} } }, 'nothing is said of t0."id"'],
  ['undefined', { select: id, where: { id: undefined } }, 'undefined cannot be compared with'],
  [
    'a comparison of order with undefined',
    { select: id, where: { id: { lt: undefined } } },
    'undefined cannot be compared',
  ],
  [
    'a comparison of order with null',
    { select: id, where: { lastVisited: { lt: null } } },
    'null cannot be compared with',
  ],
  [
    'a list with null',
    { select: id, where: { serialNumber: { in: ['x', null] } } },
    'null cannot be compared',
  ],
  ['null in place of a list', { select: id, where: { serialNumber: { in: null } } }, 'in is not an operator'],
  ['a list as a value', { select: id, where: { id: [1] } }, '1 cannot be compared with'],
  ['an invalid date', { select: id, where: { lastVisited: new Date(Number.NaN) } }, 'Invalid time value'],
  ['NUL in text', { select: id, where: { bubbleId: 'a\0' } }, 'is nothing that a column can hold'],
  ['half a character', { select: id, where: { bubbleId: 'a\ud800' } }, 'is nothing that a column can hold'],
  ['half a character in a list', { select: id, where: { bubbleId: { in: ['\udc00'] } } }, 'can hold'],
  [
    'one condition in place of a list',
    { select: id, where: { AND: { id: 1 } } },
    'AND takes a list of conditions',
  ],
  ['a conjunction of nothing', { select: id, where: { AND: [] } }, 'AND takes a list of conditions'],
  ['a disjunction of nothing', { select: id, where: { OR: [] } }, 'OR takes a list of conditions'],
  [
    'a disjunction with an empty condition',
    { select: id, where: { OR: [{}, { id: 1 }] } },
    'OR takes conditions that say something',
  ],
  [
    'a condition on every row',
    { select: id, where: { sessions: { every: { id: 1 } } } },
    'sessions takes some and nothing else',
  ],
  [
    'a condition on some rows and on none',
    { select: id, where: { sessions: { some: {}, none: {} } } },
    'takes some and nothing else',
  ],
  [
    'a condition on a list as on a single row',
    { select: id, where: { sessions: { id: 1 } } },
    'takes some and nothing else',
  ],
  [
    'a condition on a single row as on a list',
    { select: id, where: { owner: { some: { id: 1 } } } },
    'User has no field some',
  ],
  [
    'null for a single row',
    { select: id, where: { sessions: { some: { template: null } } } },
    'template takes a condition',
  ],
  ['an empty condition on a single row', { select: id, where: { owner: {} } }, 'owner takes a condition'],
];

describe(`a read (seed ${seed})`, () => {
  it.each(names)(
    'of %s returns the same as Prisma’s client',
    async (model) => {
      const check = async (query: SelectQuery) => {
        const expected = await prisma(model).findMany(query);
        expect(await database.sql.findMany(model, query)).toEqual(expected);
        return expected.length;
      };
      const whole = Object.fromEntries(columnsOf(model).map(({ name }) => [name, true]));
      expect(
        await check({ select: whole, orderBy: keyOf(model).map((name) => ({ [name]: 'asc' as const })) }),
      ).toBeGreaterThan(0);
      await forAWhile(queries(model, 3), check);
    },
    share + 60_000,
  );

  it.each(names)(
    'of %s with alternative conditions returns the same as Prisma’s client for their disjunction',
    async (model) => {
      const several = fc.array(conditions(model, 1), { minLength: 1, maxLength: 3 });
      await forAWhile(fc.tuple(queries(model, 1), several), async ([query, anyOf]) => {
        const either = query.where ? { AND: [{ OR: anyOf }, query.where] } : { OR: anyOf };
        const union: SelectQuery = { ...query, anyOf };
        expect(await database.sql.findMany(model, union)).toEqual(
          await prisma(model).findMany({ ...query, where: either }),
        );
      });
    },
    share + 60_000,
  );

  it.each(names)(
    'of %s that is run again with other values returns the same as Prisma’s client for those',
    async (model) => {
      await forAWhile(queries(model, 2), async (query) => {
        const { template, values } = slotted(query);
        // Values are also exchanged between slots of the same kind.
        const runs = [values, rotated(values), values].map((each) =>
          Object.fromEntries([...each].map(([slot, { value }]) => [slot.name, value])),
        );
        const found = await Promise.all(runs.map((given) => database.sql.findMany(model, template, given)));
        for (const [index, given] of runs.entries())
          expect(found[index]).toEqual(await prisma(model).findMany(filledWith(template, given)));
      });
    },
    share + 60_000,
  );

  it(
    'that counts rows returns the same number as Prisma’s client',
    async () => {
      const counts = fc
        .constantFrom(...names)
        .chain((model) => fc.tuple(fc.constant(model), conditions(model, 2)));
      await forAWhile(counts, async ([model, where]) => {
        expect(await database.sql.count(model, where)).toBe(await prisma(model).count({ where }));
      });
    },
    share + 60_000,
  );

  it.each(['UTC', 'Europe/Vienna', 'Africa/Monrovia'])(
    'returns times as they were written, in the time zone %s',
    async (zone) => {
      const session = new pg.Pool({
        ...database.pool.options,
        max: 1,
        onConnect: (client) => client.query(`SET timezone = '${zone}'; SET datestyle = 'SQL, DMY'`),
      });
      const ownZone = process.env.TZ;
      process.env.TZ = zone;
      try {
        const sql = createSql(session);
        for (const [written, time] of times) {
          await sql.run(
            `UPDATE "OssmDevice" SET "pairingExpires" =
             CASE id WHEN (SELECT min(id) FROM "OssmDevice") THEN $1::timestamptz END`,
            [written],
          );
          const found = { select: { pairingExpires: true as const }, where: { pairingExpires: time } };
          expect(await sql.findMany('OssmDevice', found)).toEqual([{ pairingExpires: time }]);
          const below = { ...found, where: { pairingExpires: { in: [time] } } };
          const query = { select: { ossmDevices: below }, where: { ossmDevices: { some: below.where } } };
          expect(await sql.findMany('User', query)).toEqual([{ ossmDevices: [{ pairingExpires: time }] }]);
        }
      } finally {
        if (ownZone === undefined) delete process.env.TZ;
        else process.env.TZ = ownZone;
        await session.query('RESET ALL');
        await session.end();
      }
    },
  );

  it('reads related rows only for the rows of the page, not for those that an offset skips', () => {
    const { text } = selectStatement('DttSession', {
      select: { id: true, segments: { select: { id: true } } },
      take: 2,
      skip: 90_000,
    });
    expect(text).toMatch(/^SELECT t0\."id", \(SELECT .*"segments" FROM \(SELECT t0\.\* .* OFFSET \$2\) t0$/);
  });

  it.each(floats)(
    'returns and compares the number %d, in its own rows and in related rows',
    async (number) => {
      await database.pool.query(
        `UPDATE "TrainerSegment" SET "speedMeasured" =
         CASE id WHEN (SELECT min(id) FROM "TrainerSegment") THEN $1::float8 END`,
        [Object.is(number, -0) ? '-0' : number],
      );
      const found = { select: { speedMeasured: true as const }, where: { speedMeasured: number } };
      expect(await database.sql.findMany('TrainerSegment', found)).toEqual([{ speedMeasured: number }]);
      const below = { ...found, where: { speedMeasured: { in: [number] } } };
      const query = { select: { segments: below }, where: { segments: { some: below.where } } };
      expect(await database.sql.findMany('DttSession', query)).toEqual([
        { segments: [{ speedMeasured: number }] },
      ]);
    },
  );

  it.each(rejected)('is rejected for %s', (_, query, message) => {
    // The query is not of this type on purpose.
    expect(() => selectStatement('DttDevice', query as SelectQuery)).toThrow(message);
  });
});
