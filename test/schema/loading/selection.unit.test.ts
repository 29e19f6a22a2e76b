import { assertObjectType, graphql, parse } from 'graphql';
import { describe, expect, it, vi } from 'vitest';
import { currentViewer, recordTypes, Slot } from '../../../src/database/models.ts';
import type { Context } from '../../../src/schema/context.ts';
import { needsOf } from '../../../src/schema/loading/rows.ts';
import { prepare } from '../../../src/schema/operation.ts';
import { schema } from '../../../src/schema/schema.ts';

it.each(recordTypes)('the needs of a field are declared for every field of %s', (name) => {
  const type = assertObjectType(schema.getType(name));
  for (const field of Object.keys(type.getFields())) expect(() => needsOf(type, field)).not.toThrow();
  expect(() => needsOf(type, 'other')).toThrow(`${name}.other does not say what it needs of its row`);
});

describe('a read', () => {
  /** A context whose lists are empty, and which records the `select` of each query. */
  function recordSelects(note: (query: object) => void = () => {}) {
    const selects: unknown[] = [];
    const findMany = async (model: string, query: { select: unknown }) => {
      const { select } = query;
      note(query);
      // Left out: the query for imports, which make templates visible.
      if (model !== 'DttLibraryEntry') selects.push(select);
      return [];
    };
    // Only the parts of a context that the resolver of a list uses.
    const context = {
      viewer: { id: 7, tokenId: 1 },
      sql: { findMany },
      loaders: { once: (_name: string, read: () => unknown) => read() },
    } as unknown as Context;
    return { selects, context };
  }

  /** The `select` of each query of the operation, which graphql-js executes first and then `prepare`. */
  async function selectsOf(source: string): Promise<unknown[]> {
    const { selects, context } = recordSelects();
    expect((await graphql({ schema, source, contextValue: context })).errors).toBeUndefined();
    await prepare(parse(source))?.run({}, context);
    return selects;
  }

  it.each([
    [
      'the columns of a link',
      '{ dttSessions { edges { node { trainer { serialNumber } } } } }',
      { id: true, createdAt: true, trainerId: true },
    ],
    [
      'the segments of training sessions in their order',
      '{ dttSessions { nodes { ...S } edges { node { ... { passed } } } } } fragment S on DttSession { ... on Node { id } segments { points } }',
      {
        id: true,
        createdAt: true,
        passed: true,
        segments: { orderBy: { order: 'asc' }, select: { id: true, points: true } },
      },
    ],
    ['the columns of a cursor', '{ lockTemplates { edges { cursor } } }', { id: true, createdAt: true }],
    [
      'the columns of both fragments on one connection',
      `{ dttSessions { ...A ...B } } fragment A on DttSessionConnection { nodes { name } }
       fragment B on DttSessionConnection { nodes { passed } edges { node { bubbleId } } }`,
      { id: true, createdAt: true, name: true, passed: true, bubbleId: true },
    ],
    [
      'a relation that depends on the viewer',
      '{ dttTemplates { nodes { isActive } } }',
      { id: true, createdDate: true, activeOf: { where: currentViewer, select: { id: true }, take: 1 } },
    ],
  ])('selects only %s beside the key of its list', async (_, source, select) => {
    expect(await selectsOf(source)).toEqual([select, select]);
  });

  it('has the same query in each run of an operation, so that its statement is written once, as its code is', async () => {
    const queries = new Set<{ take?: unknown; skip?: unknown }>();
    const { context } = recordSelects((query) => queries.add(query));
    const source =
      'query ($offset: Int) { dttSessions(offset: $offset) { nodes { name } } viewer { username } }';
    const operation = prepare(parse(source));
    const compile = vi.fn(async () => undefined);
    for (const offset of [0, 0, 5, 7]) await operation?.run({ offset }, { ...context, compile });
    expect(compile).toHaveBeenCalledOnce();
    // A first page skips nothing: PostgreSQL would copy all columns of its rows first.
    expect([...queries].map(({ take, skip }) => [take, skip])).toEqual([
      [expect.any(Slot), undefined],
      [1, undefined],
      [expect.any(Slot), expect.any(Slot)],
    ]);
  });

  it('plans a fragment once, even if it is spread 2⁴⁰ times', async () => {
    const levels = 40;
    const fragments = Array.from(
      { length: levels },
      (_, level) => `fragment F${level} on DttDevice { ...F${level + 1} ...F${level + 1} }`,
    );
    const source = `{ dttDevices { nodes { ...F0 } } } ${fragments.join(' ')} fragment F${levels} on DttDevice { apiHits }`;
    const { selects, context } = recordSelects();
    await graphql({ schema, source, contextValue: context });
    expect(selects).toEqual([{ id: true, lastVisited: true, apiHits: true }]);
  });
});
