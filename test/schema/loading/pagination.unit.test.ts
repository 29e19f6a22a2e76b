/** The plan of a page. test/graphql/connections.postgres.test.ts tests the lists that use it. */

import { describe, expect, it } from 'vitest';
import { defaultOrder, type Order } from '../../../src/schema/loading/keyset.ts';
import { planPage } from '../../../src/schema/loading/pagination.ts';

const newestId = defaultOrder('User');
const byTime = defaultOrder('DttSession');
const byVisit = defaultOrder('DttDevice');
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
      const { values, connect } = planPage(newestId, args);
      // One row more is read, to know whether there is another page.
      expect(values.take).toBe(size + 1);
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
});

describe('a cursor', () => {
  const cursor = (parts: unknown) => Buffer.from(JSON.stringify(parts)).toString('base64url');
  const [earliest, latest] = [-210_866_803_200_000, 8_640_000_000_000_000];

  it.each<[readonly unknown[], number, Order]>([
    [[], 1, newestId],
    [[], 2_147_483_647, newestId],
    [[0], 1, byTime],
    [[earliest], 1, byTime],
    [[latest], 1, byTime],
    [['Infinity'], 1, byTime],
    [['-Infinity'], 1, byVisit],
    [[null], 1, byVisit],
    [[1_767_225_600_000], 1, byVisit],
  ])('is valid with the values %j and the id %i in a list sorted by %j', (values, id, order) => {
    const given = cursor(['', id, values, null]);
    for (const args of [{ after: given }, { before: given }])
      expect(planPage(order, args).rows().where).toEqual({ AND: [expect.any(Object)] });
    const both = planPage(order, { after: given, before: given });
    expect(both.rows().where).toEqual({ AND: [expect.any(Object), expect.any(Object)] });
    // The list itself creates the same cursor.
    const [value] = values.map((each) => (typeof each === 'number' ? new Date(each) : each && Number(each)));
    const row = { id, [order.keys[0]?.column ?? 'x']: value };
    const [edge] = planPage(order, {}).connect([row], noCount).edges;
    expect(edge?.cursor).toBe(given);
  });

  it.each<[unknown, Order]>([
    [['', 2_147_483_648, [], null], newestId],
    [['', 1, [0], null], newestId],
    [['', 1, [], null], byTime],
    [['', 1, [null], null], byTime],
    [['', 2_147_483_648, [0], null], byTime],
    [['', 1, [earliest - 1], null], byTime],
    [['', 1, [latest + 1], null], byTime],
    [['', 1, [latest + 1], null], byVisit],
    [['', '1', [0], null], byTime],
    [['', 1, [0], 'DttDevice'], byTime],
    [[0, 1, [0], null], byTime],
    [{ id: 1 }, byTime],
    [null, byTime],
  ])('is rejected as %j in a list sorted by %j', (parts, order) => {
    for (const argument of ['after', 'before'])
      expect(() => planPage(order, { [argument]: cursor(parts) })).toThrow(
        `${argument} must be a cursor that this list has given`,
      );
  });
});
