/** The queries that are sent to a pool, without a database. */

import pg from 'pg';
import { expect, it } from 'vitest';
import { type Batch, createSql } from '../../../src/database/reader/sql.ts';

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
