/** What is asked of the pool for what requests ask, without a database. */

import pg from 'pg';
import { expect, it } from 'vitest';
import { createSql } from '../../../src/database/reader/sql.ts';

/** A pool that fails with these codes first, and then answers with the rows. */
function poolThatSays(rows: object[], ...codes: string[]) {
  const asked: unknown[] = [];
  const pool = {
    async query(query: unknown) {
      asked.push(query);
      const code = codes.shift();
      if (code !== undefined)
        throw Object.assign(new pg.DatabaseError(`failed with ${code}`, 0, 'error'), { code });
      return { rows };
    },
  };
  // All that the module touches of a pool.
  return { asked, pool: pool as unknown as pg.Pool };
}

it('a statement goes out with its values, and under the name that it is given, or none', async () => {
  const { pool, asked } = poolThatSays([{ one: 1 }]);
  expect(await createSql(pool, (text) => `name of ${text}`).run('SELECT $1', [1])).toEqual([{ one: 1 }]);
  await createSql(pool).run('SELECT $1', [2]);
  expect(asked).toEqual([
    { name: 'name of SELECT $1', text: 'SELECT $1', values: [1] },
    { name: '', text: 'SELECT $1', values: [2] },
  ]);
});

it.each(['40001', '40P01'])(
  'a write that was given up with %s in favour of another is tried once more, and a read is not',
  async (code) => {
    const once = poolThatSays([{ done: true }], code);
    expect(await createSql(once.pool).write('UPDATE …', [7])).toEqual([{ done: true }]);
    expect(once.asked).toEqual(Array(2).fill({ name: '', text: 'UPDATE …', values: [7] }));
    const twice = poolThatSays([], code, code, code);
    await expect(createSql(twice.pool).write('UPDATE …', [])).rejects.toThrow(code);
    expect(twice.asked).toHaveLength(2);
    const read = poolThatSays([], code);
    await expect(createSql(read.pool).run('SELECT …', [])).rejects.toThrow(code);
    expect(read.asked).toHaveLength(1);
  },
);

it('a count is given as a number', async () => {
  expect(await createSql(poolThatSays([{ count: 3 }]).pool).count('User', {})).toBe(3);
});

it.each(['26000', '42P05'])(
  'a statement that the session does not know by its name (%s) goes out without, and so do all after it',
  async (code) => {
    const { pool, asked } = poolThatSays([{ one: 1 }], code);
    const sql = createSql(pool, (text) => `name of ${text}`);
    expect(await sql.run('SELECT 1', [])).toEqual([{ one: 1 }]);
    await sql.run('SELECT 2', []);
    expect(asked).toEqual([
      { name: 'name of SELECT 1', text: 'SELECT 1', values: [] },
      { name: '', text: 'SELECT 1', values: [] },
      { name: '', text: 'SELECT 2', values: [] },
    ]);
  },
);
