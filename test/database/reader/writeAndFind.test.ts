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

it('writeAndFind returns what was written, and the rows as they are afterwards, however many there are of each', async () => {
  for (const [ids, found] of [
    [[1], [1]],
    [[], [1, 2]],
    [[1, 2, 3], []],
    [
      [4, 5],
      [4, 5, 6],
    ],
  ] as const) {
    const given = await sql.writeAndFind(ranking(ids, 7), 'User', query, { ids: found });
    expect(given.written).toEqual(ids.map((id) => ({ id, isHigh: true, none: null })));
    expect(given.found).toEqual(await sql.findMany('User', query, { ids: found }));
    for (const row of given.found)
      if (ids.some((id) => id === Reflect.get(row, 'id'))) expect(row).toMatchObject({ rank: 7 });
  }
});

it('writeAndFind does not mix its results up with those of concurrent statements', async () => {
  const ids = Array.from({ length: 20 }, (_, index) => index + 1);
  const all = await Promise.all(
    ids.flatMap((id) => [
      sql.writeAndFind(ranking([id], id), 'User', query, { ids: [id] }),
      sql.findMany('User', query, { ids: [id] }).then((found) => ({ written: [{ id }], found })),
    ]),
  );
  for (const [index, { written, found }] of all.entries()) {
    const id = Math.floor(index / 2) + 1;
    expect(written).toMatchObject([{ id }]);
    expect(found).toMatchObject([index % 2 === 0 ? { id, rank: id } : { id }]);
  }
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
