/** The plan of a page. test/graphql/connections.postgres.test.ts tests the lists that use it. */

import { describe, expect, it } from 'vitest';
import { newest, newestId, type Order } from '../../../src/schema/loading/keyset.ts';
import { planPage } from '../../../src/schema/loading/pagination.ts';

const byTime = newest('createdAt');
const byVisit = newest('lastVisited', true);
const noCount = async () => 0;
const rows = (count: number) => Array.from({ length: count }, (_, index) => ({ id: index + 1 }));

describe('a page', () => {
  it('has 50 rows by default, or as many as first or last says', () => {
    for (const [args, size] of [
      [{}, 50],
      [{ first: null, last: null, after: null, before: null, offset: null }, 50],
      [{ first: 1 }, 1],
      [{ first: 100 }, 100],
      [{ last: 100 }, 100],
      // The defaults of the schema, beside an argument.
      [{ first: 50, offset: 0, last: 7 }, 7],
      [{ first: null, last: 7 }, 7],
    ] as const) {
      const { slotValues, connect } = planPage(newestId, args);
      // One row more is read, to know whether there is another page.
      expect(slotValues.take).toBe(size + 1);
      const further = 'last' in args && args.last ? 'hasPreviousPage' : 'hasNextPage';
      for (const [count, hasMore] of [
        [size, false],
        [size + 1, true],
      ] as const) {
        const { edges, pageInfo } = connect(rows(count), noCount);
        expect(edges).toHaveLength(size);
        expect(pageInfo[further]).toBe(hasMore);
      }
    }
  });

  it('skips as many rows as its offset, and has a previous page if that is not 0', () => {
    const pageAt = (offset: number | undefined) => {
      const { query, slotValues, connect } = planPage(newestId, { offset });
      return {
        skip: query().skip && slotValues.skip,
        hasPreviousPage: connect([], noCount).pageInfo.hasPreviousPage,
      };
    };
    expect(pageAt(undefined)).toEqual({ hasPreviousPage: false });
    expect(pageAt(0)).toEqual({ hasPreviousPage: false });
    expect(pageAt(1)).toEqual({ skip: 1, hasPreviousPage: true });
  });

  it('has its rows in the order of the list, whether it is read from the beginning or from the end', () => {
    const order = (args: object, each: Order) => planPage(each, args).query().orderBy;
    expect(order({}, newestId)).toEqual([{ id: 'desc' }]);
    expect(order({ last: 1 }, newestId)).toEqual([{ id: 'asc' }]);
    expect(order({}, byTime)).toEqual([{ createdAt: 'desc' }, { id: 'desc' }]);
    expect(order({}, byVisit)).toEqual([{ lastVisited: { sort: 'desc', nulls: 'last' } }, { id: 'desc' }]);
    expect(order({ last: 1 }, byVisit)).toEqual([
      { lastVisited: { sort: 'asc', nulls: 'first' } },
      { id: 'asc' },
    ]);
    const ids = planPage(newestId, { last: 2 })
      .connect(rows(3), noCount)
      .edges.map(({ node }) => node.id);
    expect(ids).toEqual([2, 1]);
  });
});

describe('a cursor', () => {
  const cursor = (text: string) => Buffer.from(text).toString('base64url');
  const [earliest, latest] = [-210_866_803_200_000, 8_640_000_000_000_000];

  it.each<[string, Order]>([
    ['/1', newestId],
    ['/2147483647', newestId],
    ['0/1', byTime],
    [`${earliest}/1`, byTime],
    [`${latest}/1`, byTime],
    ['Infinity/1', byTime],
    ['-Infinity/1', byVisit],
    ['/1', byVisit],
    ['1767225600000/1', byVisit],
  ])('is valid as %s in a list sorted by %j', (text, order) => {
    for (const args of [{ after: cursor(text) }, { before: cursor(text) }])
      expect(planPage(order, args).query().where).toEqual({ AND: [expect.any(Object)] });
    const both = planPage(order, { after: cursor(text), before: cursor(text) });
    expect(both.query().where).toEqual({ AND: [expect.any(Object), expect.any(Object)] });
    // The list itself creates the same cursor.
    const [, time = '', id] = /^(.*)\/(.*)$/.exec(text) ?? [];
    const value = time === '' ? null : Number.isFinite(Number(time)) ? new Date(Number(time)) : Number(time);
    const row = { id: Number(id), [order.keys[0]?.column ?? 'x']: value };
    const [edge] = planPage(order, {}).connect([row], noCount).edges;
    expect(edge?.cursor).toBe(cursor(text));
  });

  it.each<[string, Order]>([
    ['/2147483648', newestId],
    ['0/1', newestId],
    ['Infinity/1', newestId],
    ['/1', byTime],
    ['0/2147483648', byTime],
    [`${earliest - 1}/1`, byTime],
    [`${latest + 1}/1`, byTime],
    [`${latest + 1}/1`, byVisit],
    ['0/', byTime],
    ['0/1 ', byTime],
    [' 0/1', byTime],
  ])('is rejected as %j in a list sorted by %j', (text, order) => {
    for (const argument of ['after', 'before'])
      expect(() => planPage(order, { [argument]: cursor(text) })).toThrow(
        `${argument} must be a cursor that this list has given`,
      );
  });
});
