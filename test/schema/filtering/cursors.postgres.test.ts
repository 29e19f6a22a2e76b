/** Cursors of filtered and sorted lists: each is valid only with the same filter and order. */

import { describe, expect, it } from 'vitest';
import { createAccount } from '../../support/accounts.ts';
import { graphqlOnce, graphqlOnEveryPath } from '../../support/gateway.ts';
import { gatewayWith } from '../../support/setUp.ts';

const { gateway, alice } = await gatewayWith(['alice']);

type Asked = Partial<
  Record<'first' | 'last' | 'offset', number> & Record<'after' | 'before', string | null>
> & {
  readonly where?: object;
  readonly orderBy?: object | undefined;
};

async function ask(list: string, type: string, asked: Asked) {
  return graphqlOnce(
    gateway,
    alice.token,
    `query ($where: ${type}Filter, $orderBy: [${type}Order!], $first: Int, $last: Int, $after: String, $before: String, $offset: Int) {
      ${list}(where: $where, orderBy: $orderBy, first: $first, last: $last, after: $after, before: $before, offset: $offset) {
        totalCount nodes { databaseId } edges { cursor } pageInfo { hasNextPage hasPreviousPage endCursor startCursor } } }`,
    { ...asked },
  );
}

async function page(list: string, type: string, asked: Asked) {
  const { data, errors } = await ask(list, type, asked);
  expect(errors).toBeUndefined();
  const { nodes, edges, pageInfo } = data[list];
  return {
    ids: nodes.map(({ databaseId }: { databaseId: number }) => databaseId) as number[],
    cursors: edges.map(({ cursor }: { cursor: string }) => cursor) as string[],
    pageInfo,
  };
}

const sessions = (asked: Asked) => page('dttSessions', 'DttSession', asked);
const byName = { orderBy: [{ field: 'NAME', direction: 'ASC' }] };
const failed = { where: { passed: { eq: false } } };
const encode = (text: string) => Buffer.from(text).toString('base64url');

describe('a cursor', () => {
  it('of a list in its default order contains the time and the id', async () => {
    const { ids, cursors } = await sessions({ first: 1 });
    const time = Date.parse('2026-01-01T01:00:00Z');
    expect(cursors).toEqual([encode(JSON.stringify(['', ids[0], [time], null]))]);
    for (const nothing of [{ where: {} }, { where: { and: [] } }, { orderBy: [] }])
      expect((await sessions({ first: 1, ...nothing })).cursors).toEqual(cursors);
    const { cursors: named } = await sessions({ first: 1, ...byName });
    expect((await sessions({ first: 1, ...byName, where: {} })).cursors).toEqual(named);
    const [mark] = JSON.parse(Buffer.from(named[0] ?? '', 'base64url').toString());
    expect(mark).toMatch(/^[\w-]{12}$/);
  });

  it('of a filter is valid with an equivalent filter in another notation and another order of fields', async () => {
    const where = {
      passed: { eq: false },
      createdAt: { gte: '2026-01-01T00:00:00Z', lt: '2027-01-01T00:00:00Z' },
    };
    const { ids, cursors } = await sessions({ where });
    const same = {
      createdAt: { lt: '2027-01-01T01:00:00+01:00', gte: '2026-01-01T00:00:00.000Z' },
      passed: { eq: false },
    };
    expect((await sessions({ where: same, after: cursors[0] ?? '' })).ids).toEqual(ids.slice(1));
  });

  const others: readonly (readonly [string, Asked, Asked])[] = [
    ['the default list, with a filter', {}, failed],
    ['a filter, with another one', failed, { where: { passed: { eq: true } } }],
    ['an order, with another direction', byName, { orderBy: [{ field: 'NAME', direction: 'DESC' }] }],
  ];
  it.each(others)('of %s, is an error that says what to send', async (_, from, to) => {
    const { cursors } = await sessions(from);
    for (const argument of ['after', 'before']) {
      const { data, errors } = await ask('dttSessions', 'DttSession', { ...to, [argument]: cursors[0] });
      expect(data).toEqual({ dttSessions: null });
      expect(errors).toEqual([
        expect.objectContaining({
          message: `${argument} is a cursor of a list with another where or orderBy: ask with those that it came with, or without it`,
          extensions: { code: 'BAD_USER_INPUT', argument },
        }),
      ]);
    }
  });

  it('of a list of another type is an error', async () => {
    const { cursors } = await page('lockSessions', 'LockSession', { orderBy: byName.orderBy });
    const { errors } = await ask('dttSessions', 'DttSession', { ...byName, after: cursors[0] ?? '' });
    expect(errors?.[0]?.extensions).toEqual({ code: 'BAD_USER_INPUT', argument: 'after' });
  });

  it('with a forged value is an error and never reaches a statement', async () => {
    const foreign = {
      message: 'after must be a cursor that this list has given',
      extensions: { code: 'BAD_USER_INPUT', argument: 'after' },
    };
    const lists: readonly (readonly [string, string, Asked, unknown[]])[] = [
      ['dttSessions', 'DttSession', byName, [1, '\0', '\ud800', true, {}, []]],
      ['dttSessions', 'DttSession', { orderBy: [{ field: 'PASSED', direction: 'ASC' }] }, [1, 'true']],
      [
        'dttSessions',
        'DttSession',
        { orderBy: [{ field: 'CREATED_AT', direction: 'ASC' }] },
        [null, 'NaN', 1e300, 0.5, 'x', true, -210_866_803_200_001, 8_640_000_000_000_001],
      ],
      [
        'lockSessions',
        'LockSession',
        { orderBy: [{ field: 'DURATION_SECONDS', direction: 'ASC' }] },
        [null, 2 ** 31, -(2 ** 31) - 1, 0.5, '1'],
      ],
      [
        'dttTemplates',
        'DttTemplate',
        { orderBy: [{ field: 'TARGET_DEPTH', direction: 'ASC' }] },
        [null, 'x', true],
      ],
      ['devices', 'Device', { orderBy: [{ field: 'LAST_VISITED_AT', direction: 'ASC' }] }, [1]],
    ];
    for (const [list, type, asked, values] of lists) {
      const { cursors } = await page(list, type, { ...asked, first: 1 });
      const [mark] = JSON.parse(Buffer.from(cursors[0] ?? '', 'base64url').toString());
      const forged = [
        ...values.map((value) => [mark, 1, [value], null]),
        [mark, 1, [], null],
        [mark, 1, [null, null], null],
        [mark, 1, 'x', null],
        [mark, -1, [null], null],
        [mark, 2 ** 31, [null], null],
        [mark, 1, [null], 'Elsewhere'],
        [mark, 1, [null], 7],
        [mark],
      ];
      for (const after of [
        ...forged.map((each) => encode(JSON.stringify(each))),
        encode(`["${mark}`),
        '',
        'x',
      ]) {
        const { errors } = await ask(list, type, { ...asked, after });
        expect(errors, `${list} after ${Buffer.from(after, 'base64url')}`).toMatchObject([foreign]);
      }
    }
    expect(gateway.log).toEqual([]);
  });

  it('at a time that Date cannot represent is an error', async () => {
    const { userId, token } = await createAccount(gateway.database.client, 'beyond');
    const late = `UPDATE "OssmDevice" SET "lastVisited" = '280000-01-01' WHERE "ownerId" = $1`;
    await gateway.database.pool.query(late, [userId]);
    for (const fields of ['edges { cursor }', 'pageInfo { endCursor }']) {
      const { errors } = await graphqlOnEveryPath(gateway, token, `{ ossmDevices { ${fields} } }`);
      expect(errors).toMatchObject([{ extensions: { code: 'INTERNAL_SERVER_ERROR' } }]);
    }
  });
});

const size = (name: string) => `${name} must be an integer from 1 to 100`;
it.each<[asked: Asked, message: string, argument: string]>([
  [
    { orderBy: ['NAME', 'PASSED', 'CREATED_AT', 'NAME'].map((field) => ({ field, direction: 'ASC' })) },
    'orderBy must have at most 3 fields',
    'orderBy',
  ],
  [{ orderBy: [...byName.orderBy, ...byName.orderBy] }, 'orderBy must name each field once', 'orderBy'],
  [{ first: 101 }, size('first'), 'first'],
  [{ last: 0 }, size('last'), 'last'],
  [{ last: 101 }, size('last'), 'last'],
  [{ first: 1, last: 1 }, 'first and last cannot be used together', 'first'],
  [{ offset: -1 }, 'offset must be an integer of at least 0', 'offset'],
  [{ offset: 1, last: 1 }, 'offset and last cannot be used together', 'offset'],
])('an argument of a list that is out of bounds is an error: %j', async (asked, message, argument) => {
  const { errors } = await ask('dttSessions', 'DttSession', asked);
  const extensions = { code: 'BAD_USER_INPUT', argument };
  expect(errors).toEqual([expect.objectContaining({ message, extensions })]);
});
