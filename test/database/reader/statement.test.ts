/**
 * The SQL of the gateway's reads: random queries over edge-case data return the same as Prisma's client.
 *
 * `SEED=…` repeats the data and the queries of a run; `FUZZ_MINUTES=…` sets how long it takes.
 */

import fc from 'fast-check';
import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { getDatamodel } from '../../../src/database/generated/pothos.ts';
import * as enums from '../../../src/database/generated/prisma/enums.ts';
import { type ModelName, Slot } from '../../../src/database/models.ts';
import { createSql } from '../../../src/database/reader/sql.ts';
import {
  countJoins,
  countStatement,
  type SelectQuery,
  selectStatement,
} from '../../../src/database/reader/statement.ts';
import type { TestDatabase } from '../../support/gateway.ts';
import { databaseWith } from '../../support/setUp.ts';

const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31);
const minutes = Number(process.env.FUZZ_MINUTES ?? 0);

const models = getDatamodel().datamodel.models;
// What Prisma generates has exactly these models.
const names = Object.keys(models) as ModelName[];
function modelOf(name: string) {
  const model = models[name];
  if (!model) throw new RangeError(`there is no model ${name}`);
  return model;
}
type Field = ReturnType<typeof modelOf>['fields'][number];
/** How long, in milliseconds, queries of a model are generated and compared. */
const share = minutes > 0 ? (minutes * 60_000) / (names.length + 1) : 100;

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
  String: ['', ' ', 'a', 'A', 'e\u0301', '\u00e9', '\ufffd', '\uffff', '😀', '\u0001\u007f\u2028'].concat([
    `"'\\\\n`,
    '{1,NULL}',
    'null',
    'x'.repeat(20_000),
  ]),
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

const { database } = await databaseWith();
await fill(database);

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
      ...['', 'a', 'A', 'É', 'E\u0301', 'x', '1', '%', '_', '\\%', '\\_1', '%1', '\\\\', '"', '😀'],
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
    // Several columns in one condition, and a disjunction beside others.
    fc.tuple(deeper, several, leaf).map(([one, some, other]) => ({ ...one, OR: some, ...other })),
    ...related,
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

/** The query with slots in the places of its values. */
function slotted(query: SelectQuery): { template: SelectQuery; values: Record<string, unknown> } {
  const values: Record<string, unknown> = {};
  const slot = (value: unknown): Slot => {
    const made = new Slot(String(Object.keys(values).length));
    values[made.name] = value;
    return made;
  };
  const each = (record: object, change: (value: unknown, name: string) => unknown) =>
    Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value, name)]));
  const ofQuery = (given: object): object =>
    each(given, (value, name) => {
      if (name === 'take' || name === 'skip') return slot(value);
      if (name === 'where') return ofCondition(value);
      return name === 'select' ? each(value as object, ofSelected) : value;
    });
  // Selected lists and counts are queries themselves.
  const ofSelected = (wanted: unknown) => (typeof wanted === 'object' ? ofQuery(wanted ?? {}) : wanted);
  const ofCondition = (wanted: unknown): unknown => {
    if (Array.isArray(wanted)) return wanted.map(ofCondition);
    if (wanted === null) return null;
    if (typeof wanted !== 'object' || wanted instanceof Date) return slot(wanted);
    // The form of a pattern depends on its value.
    if ('mode' in wanted) return wanted;
    return each(wanted, (value, name) => (name === 'in' ? slot(value) : ofCondition(value)));
  };
  return { template: ofQuery(query) as SelectQuery, values };
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
  ['2026-12-31 23:59:59.999999Z', new Date('2027-01-01T00:00:00.000Z')],
  ['1800-01-01 00:00:00.001Z', new Date('1800-01-01T00:00:00.001Z')],
  ['0001-03-15 00:00Z BC', new Date('0000-03-15T00:00:00.000Z')],
  ['4714-11-24 00:00Z BC', new Date('-004713-11-24T00:00:00.000Z')],
  ['275760-09-13 00:00Z', new Date(8.64e15)],
  ['infinity', Number.POSITIVE_INFINITY],
  ['-infinity', Number.NEGATIVE_INFINITY],
];

/** Numbers that Prisma's client changes. */
const floats = [-0, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.MAX_VALUE];

describe(`a read (seed ${seed})`, () => {
  it.each(names)(
    'of %s returns the same as Prisma’s client, also with other values in slots',
    async (model) => {
      const find = (query: SelectQuery) => prisma(model).findMany({ ...query });
      const whole = Object.fromEntries(columnsOf(model).map(({ name }) => [name, true]));
      const all = { select: whole, orderBy: keyOf(model).map((name) => ({ [name]: 'asc' as const })) };
      expect((await find(all)).length).toBeGreaterThan(0);
      expect(await database.sql.findMany(model, all)).toEqual(await find(all));
      await forAWhile(queries(model, 3), async (query) => {
        expect(await database.sql.findMany(model, query)).toEqual(await find(query));
        const { template, values } = slotted(query);
        const { take, skip } = template;
        const swapped = { ...values };
        if (take instanceof Slot && skip instanceof Slot) {
          swapped[take.name] = values[skip.name];
          swapped[skip.name] = values[take.name];
        }
        for (const given of [values, swapped, values])
          expect(await database.sql.findMany(model, template, given)).toEqual(
            await find(filledWith(template, given)),
          );
      });
    },
    share + 60_000,
  );

  it(
    'that counts rows returns the same number as Prisma’s client, and joins as many tables as are counted',
    async () => {
      const counts = fc
        .constantFrom(...names)
        .chain((model) => fc.tuple(fc.constant(model), conditions(model, 2)));
      for (const [model, where] of fc.sample(counts, { seed, numRuns: 300 }))
        expect(countStatement(model, where).text.split('EXISTS')).toHaveLength(countJoins(model, where) + 1);
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
        // The end of the connection may come after that of the database.
        onConnect: (client) =>
          client.on('error', () => {}).query(`SET timezone = '${zone}'; SET datestyle = 'SQL, DMY'`),
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
});
