/** Reads in SQL of the gateway's own: they answer what Prisma's client answers. */

import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Model, type RowQuery, selectStatement } from '../../src/database/statement.ts';
import { getDatamodel } from '../../src/generated/pothos.ts';
import { createAccount, importTemplate } from '../accounts.ts';
import { openTestDatabase, type TestDatabase } from '../gateway.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await openTestDatabase();
  const [alice, bob] = [
    await createAccount(database.client, 'alice'),
    await createAccount(database.client, 'bob'),
  ];
  const [template] = bob.dttTemplates;
  if (template !== undefined) await importTemplate(database.client, alice, template);
  await database.client.user.update({
    where: { id: alice.userId },
    data: { activeTemplateId: alice.dttTemplates[0] ?? null },
  });
  // What JSON and JavaScript could each get wrong.
  await database.pool.query(`
    UPDATE "TrainerSegment" SET "percentGrade" = CASE id % 3 WHEN 0 THEN 1e-300 WHEN 1 THEN 0.1 + 0.2 ELSE -0.0 END;
    UPDATE "DttTemplate" SET name = E'a "b" \\\\ \\n\\u2028 \\U0001F600', description = '';
    UPDATE "LockSegment" SET "createdAt" = CASE id % 2 WHEN 0 THEN '0099-12-31 23:59:59.999Z' ELSE '2026-07-01 12:00+02' END::timestamptz`);
});
afterAll(() => database?.close());

interface Field {
  readonly name: string;
  readonly type: string;
  readonly kind: string;
  readonly isList: boolean;
  readonly isRequired: boolean;
}

const { models } = getDatamodel().datamodel;
const fieldsOf = (model: string) => (models[model]?.fields ?? []) as readonly Field[];
/** The models whose rows requests are for: all have an id. */
const names = Object.keys(models).filter(
  (name) => !['DttTemplateImport', 'Mirror', 'ApiToken', 'RateLimit'].includes(name),
);
const columnsOf = (model: string) => fieldsOf(model).filter(({ kind }) => kind !== 'object');
const relationsOf = (model: string) =>
  fieldsOf(model).filter(({ kind, type }) => kind === 'object' && names.includes(type));

const times = fc
  .integer({ min: Date.parse('2026-01-01T00:00:00Z'), max: Date.parse('2026-12-31T00:00:00Z') })
  .map((time) => new Date(time));
const ids = fc.integer({ min: 0, max: 12 });

function conditions(model: string, depth: number): fc.Arbitrary<object> {
  const byId = fc.oneof(
    ids.map((id) => ({ id })),
    fc.record({ id: fc.record({ in: fc.array(ids, { maxLength: 6 }) }) }),
    fc
      .constantFrom('lt', 'lte', 'gt', 'gte')
      .chain((operator) => ids.map((id) => ({ id: { [operator]: id } }))),
  );
  const byTime = columnsOf(model)
    .filter(({ type }) => type === 'DateTime')
    .flatMap(({ name, isRequired }) => [
      fc
        .constantFrom('lt', 'lte', 'gt', 'gte')
        .chain((operator) => times.map((time) => ({ [name]: { [operator]: time } }))),
      // Prisma's client refuses to compare with null what cannot be null.
      ...(isRequired ? [] : [fc.constantFrom({ [name]: null }, { [name]: { not: null } })]),
    ]);
  const leaf = fc.oneof(byId, ...byTime);
  if (depth === 0) return leaf;
  const deeper = conditions(model, depth - 1);
  // Prisma's client has ideas of its own about a disjunction of nothing.
  const several = fc.array(deeper, { minLength: 1, maxLength: 3 });
  const related = relationsOf(model).map(({ name, type, isList }) =>
    conditions(type, depth - 1).map((where) => ({ [name]: isList ? { some: where } : where })),
  );
  return fc.oneof(
    leaf,
    several.map((all) => ({ AND: all })),
    several.map((some) => ({ OR: some })),
    ...related,
  );
}

function queries(model: string, depth: number): fc.Arbitrary<RowQuery> {
  const columns = fc
    .subarray(columnsOf(model).map(({ name }) => name))
    .map((chosen) => Object.fromEntries(['id', ...chosen].map((name) => [name, true])));
  const lists = relationsOf(model).filter(({ isList }) => isList);
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
  const counted =
    lists.length === 0
      ? fc.constant({})
      : fc.oneof(
          fc.constant({}),
          fc
            .constantFrom(...lists)
            .chain(({ name, type }) =>
              conditions(type, 1).map((where) => ({ _count: { select: { [name]: { where } } } })),
            ),
        );
  const nullable = columnsOf(model).filter(({ isRequired, type }) => !isRequired && type === 'DateTime');
  const order = fc.tuple(
    fc.constantFrom<'asc' | 'desc'>('asc', 'desc'),
    fc.constantFrom<'first' | 'last'>('first', 'last'),
    fc.option(fc.constantFrom(...nullable, undefined)),
  );
  return fc
    .record({
      select: fc.tuple(columns, nested, counted).map((parts) => Object.assign({}, ...parts)),
      where: fc.oneof(fc.constant({}), conditions(model, 2)),
      orderBy: order.map(([sort, nulls, by]) => [
        ...(by ? [{ [by.name]: { sort, nulls } }] : []),
        { id: sort },
      ]),
      take: fc.option(fc.integer({ min: 1, max: 5 }), { nil: undefined }),
      skip: fc.option(fc.integer({ min: 0, max: 3 }), { nil: undefined }),
    })
    .map(({ take, skip, ...query }) => ({
      ...query,
      ...(take !== undefined && { take }),
      ...(skip !== undefined && { skip }),
    }));
}

/** The answer of Prisma's client. */
function byPrisma(model: string, query: RowQuery): Promise<object[]> {
  const delegate = `${model[0]?.toLowerCase()}${model.slice(1)}`;
  // The client's delegates all have this method, but no type of their own in common.
  const { [delegate]: found } = database.client as unknown as Record<
    string,
    { findMany(query: RowQuery): Promise<object[]> }
  >;
  if (!found) throw new Error(`Prisma's client has no ${delegate}`);
  return found.findMany(query);
}

describe('a read', () => {
  it.each(names)(
    'of %s gives what Prisma’s client gives',
    async (model) => {
      let rows = 0;
      await fc.assert(
        fc.asyncProperty(queries(model, 2), async (query) => {
          const expected = await byPrisma(model, query);
          expect(await database.sql.findMany(model as Model, query)).toEqual(expected);
          rows += expected.length;
        }),
        { numRuns: 40 },
      );
      expect(rows).toBeGreaterThan(0);
    },
    60_000,
  );

  it('counts what Prisma’s client counts', async () => {
    await fc.assert(
      fc.asyncProperty(conditions('DttSession', 2), async (where) => {
        expect(await database.sql.count('DttSession', where)).toBe(
          await database.client.dttSession.count({ where }),
        );
      }),
      { numRuns: 40 },
    );
  });

  it('reads the rows below a row for the rows of the page alone, not for those that an offset skips', () => {
    const { text } = selectStatement('DttSession', {
      select: { id: true, segments: { select: { id: true } } },
      take: 2,
      skip: 90_000,
    });
    expect(text).toMatch(/^SELECT t0\."id", \(SELECT .*"segments" FROM \(SELECT t0\.\* .* OFFSET \$2\) t0$/);
  });

  it.each([
    ['a column that is none', { select: { secret: true } }, 'DttDevice has no field secret'],
    [
      'an operator that is none',
      { select: { id: true }, where: { id: { like: '1' } } },
      'like is not an operator',
    ],
    ['rows of a column', { select: { _count: { select: { name: {} } } } }, 'DttDevice has no field name'],
  ])('is refused for %s', (_, query, message) => {
    expect(() => selectStatement('DttDevice', query)).toThrow(message);
  });
});
