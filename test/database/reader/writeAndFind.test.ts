/** Writing and reading in one transaction, on connections that other statements use as well. */

import { afterAll, beforeAll, expect, it } from 'vitest';
import { Slot } from '../../../src/database/reader/query.ts';
import { createSql, type Sql } from '../../../src/database/reader/sql.ts';
import { openTestDatabase, type TestDatabase } from '../../support/gateway.ts';

let database: TestDatabase;
let sql: Sql;
beforeAll(async () => {
  database = await openTestDatabase();
  sql = createSql(database.pool);
  await database.pool.query(
    `INSERT INTO "User" (username) SELECT 'user ' || n FROM generate_series(1, 20) n`,
  );
});
afterAll(() => database?.close());

const query = {
  select: { id: true, rank: true, username: true },
  where: { id: { in: new Slot('ids') } },
} as const;

/** A statement that sets the ranks of users, and returns columns of several types. */
const ranking = (ids: readonly number[], rank: number) => ({
  text: 'UPDATE "User" SET rank = $2 WHERE id = ANY($1) RETURNING id, rank > 5 AS "isHigh", NULL::int AS none',
  values: [ids, rank],
});

it('writeAndFind returns what was written, and the rows as they are afterwards, also beside other statements', async () => {
  const asked = [
    [[1], [1]],
    [[], [1, 2]],
    [[3, 4, 5], []],
    [
      [6, 7],
      [6, 7, 8],
    ],
  ] as const;
  const given = await Promise.all(
    asked.flatMap(([ids, found]) => [
      sql.writeAndFind(ranking(ids, 7), 'User', query, { ids: found }),
      sql.findMany('User', query, { ids: [20] }).then((rows) => ({ written: rows, found: [] })),
    ]),
  );
  for (const [index, [ids, found]] of asked.entries()) {
    expect(given[2 * index]?.written).toEqual(ids.map((id) => ({ id, isHigh: true, none: null })));
    expect(given[2 * index]?.found).toEqual(await sql.findMany('User', query, { ids: found }));
    expect(given[2 * index + 1]?.written).toMatchObject([{ id: 20 }]);
  }
  expect(await sql.findMany('User', query, { ids: [6] })).toMatchObject([{ rank: 7 }]);
});

it('writeAndFind writes nothing when the read fails, and reads nothing when the write fails', async () => {
  await sql.writeAndFind(ranking([1], 3), 'User', query, { ids: [] });
  const largest = 2 ** 31;
  await expect(sql.writeAndFind(ranking([1], 9), 'User', query, { ids: [largest] })).rejects.toThrow(
    /out of range/,
  );
  await expect(sql.writeAndFind(ranking([1], largest), 'User', query, { ids: [1] })).rejects.toThrow(
    /out of range/,
  );
  const unreadable = {
    ...ranking([2], 9),
    columns: [
      { name: 'id', read: JSON.parse },
      { name: 'isHigh', read: JSON.parse },
    ],
  };
  await expect(sql.writeAndFind(unreadable, 'User', query, { ids: [1] })).rejects.toThrow(SyntaxError);
  await expect(sql.run('SELECT $1', [new Date(Number.NaN)])).rejects.toThrow('Invalid time value');
  // The connections still work.
  expect(await sql.findMany('User', query, { ids: [1] })).toMatchObject([{ id: 1, rank: 3 }]);
});
