/** The statements that are sent to a pool, and the errors of queries that are not supported. Without a database. */

import pg from 'pg';
import { expect, it } from 'vitest';
import { type Batch, createSql } from '../../../src/database/reader/sql.ts';
import { type SelectQuery, selectStatement } from '../../../src/database/reader/statement.ts';

/** A pool that fails with each of these codes first, and then returns the rows. */
function fakePool(rows: object[], ...codes: string[]) {
  const sent: unknown[] = [];
  const pool = {
    async query({ statements }: Batch) {
      sent.push(...statements);
      const code = codes.shift();
      if (code !== undefined)
        throw Object.assign(new pg.DatabaseError(`failed with ${code}`, 0, 'error'), { code });
      return [rows];
    },
  };
  // The only method of a pool that the module uses.
  return { sent, pool: pool as unknown as pg.Pool };
}

it.each(['40001', '40P01'])(
  'a write that is aborted with %s is retried once, and a read is not retried',
  async (code) => {
    const write = (pool: pg.Pool) =>
      createSql(pool).write({ text: 'UPDATE …', values: [7] }, 'User', { select: { id: true } });
    const once = fakePool([{ done: true }], code);
    expect(await write(once.pool)).toEqual([[{ done: true }], []]);
    const both = [{ text: 'UPDATE …', values: [7] }, { text: expect.stringMatching(/^SELECT/) }];
    expect(once.sent).toMatchObject([...both, ...both]);
    const twice = fakePool([], code, code, code);
    await expect(write(twice.pool)).rejects.toThrow(code);
    expect(twice.sent).toHaveLength(4);
    const read = fakePool([], code);
    await expect(createSql(read.pool).run('SELECT …', [])).rejects.toThrow(code);
    expect(read.sent).toHaveLength(1);
  },
);

it.each(['26000', '42P05'])(
  'a statement whose name the session does not know (%s) is sent again without it, and later ones have no name',
  async (code) => {
    const { pool, sent } = fakePool([{ one: 1 }], code);
    const sql = createSql(pool, (text) => `name of ${text}`);
    expect(await sql.run('SELECT 1', [])).toEqual([{ one: 1 }]);
    await sql.run('SELECT 2', []);
    expect(sent).toEqual([
      { name: 'name of SELECT 1', text: 'SELECT 1', values: [] },
      { name: '', text: 'SELECT 1', values: [] },
      { name: '', text: 'SELECT 2', values: [] },
    ]);
  },
);

const select = { id: true };

it.each<[string, SelectQuery]>([
  ['a column that does not exist', { select: { lastVisited: true } }],
  ['an empty selection', { select: {} }],
  ['a column that is not selected', { select: { bubbleId: false } }],
  ['a column of a relation that does not exist', { select: { segments: { select: { username: true } } } }],
  ['a relation to one row, which is read by its id', { select: { owner: { select } } }],
  ['a count of something that does not exist', { select: { _count: { select: { dttDevices: true } } } }],
  [
    'a count with more than a condition',
    { select: { _count: { select: { segments: { where: {}, take: 1 } } } } },
  ],
  ['a condition on a column that does not exist', { select, where: { username: 'alice' } }],
  ['bytes', { select, where: { owner: { tokens: { some: { digest: Buffer.of(1) } } } } }],
  ['an operator', { select, where: { id: { notIn: [1] } } }],
  ['a comparison with nothing', { select, where: { id: {} } }],
  ['a comparison with undefined', { select, where: { id: { lt: undefined } } }],
  ['a comparison with null', { select, where: { createdAt: { lt: null } } }],
  ['null in a list', { select, where: { bubbleId: { in: ['x', null] } } }],
  ['a pattern that regards case', { select, where: { bubbleId: { contains: 'a' } } }],
  ['equality without regard to case', { select, where: { bubbleId: { equals: 'a', mode: 'insensitive' } } }],
  ['NUL in text', { select, where: { bubbleId: 'a\0' } }],
  ['half a character', { select, where: { bubbleId: { in: ['\udc00'] } } }],
  ['an invalid date', { select, where: { createdAt: new Date(Number.NaN) } }],
  ['a conjunction of nothing', { select, where: { AND: [] } }],
  ['a disjunction of nothing', { select, where: { OR: [] } }],
  ['a condition on every row', { select, where: { segments: { every: { id: 1 } } } }],
  ['a condition on some rows and on none', { select, where: { segments: { some: {}, none: {} } } }],
  ['an order by a relation', { select, orderBy: { owner: 'asc' } }],
])('is an error: %s', (_, query) => {
  expect(() => selectStatement('DttSession', query)).toThrow();
});
