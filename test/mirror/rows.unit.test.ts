/** Writing rows into the mirror. */

import type pg from 'pg';
import { expect, it } from 'vitest';
import { upsert } from '../../src/mirror/rows.ts';

it('takes a list that comes whole, however long it is, in no time', async () => {
  const written: number[] = [];
  const query = async (_text: string, [rows]: string[] = []) => {
    if (rows !== undefined) written.push(JSON.parse(rows).length);
    return { rows: [] };
  };
  // Two kinds of rows, by the columns that they have.
  const rows = Array.from({ length: 40_000 }, (_, id) => ({ id, ...(id % 2 === 0 && { name: 'x' }) }));
  const began = performance.now();
  await upsert({ query } as unknown as pg.PoolClient, 'LockTemplate', rows);
  expect(performance.now() - began).toBeLessThan(3_000);
  expect(written).toEqual([20_000, 20_000]);
});
