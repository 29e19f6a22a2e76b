import { assert, asyncProperty, bigInt, uniqueArray } from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { isOver, parseSnapshot } from '../../../src/database/feed/logical.ts';
import { openTestDatabase, type TestDatabase } from '../../support/gateway.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database?.close());

/** Several ids of transactions near to each other. None of those has 0, 1 or 2 as its lower 32 bits. */
const ids = (least: bigint, most: bigint) =>
  bigInt({ min: least, max: most }).chain((middle) => {
    const near = bigInt({ min: middle > 50n ? middle - 50n : 3n, max: middle + 50n });
    return uniqueArray(near.filter(isOfTransaction), { minLength: 3, maxLength: 12 });
  });
const isOfTransaction = (id: bigint) => BigInt.asUintN(32, id) > 2n;

it.each([
  ['the first ids', 3n, 60n],
  ['ids whose lower 32 bits begin again', 2n ** 32n - 30n, 2n ** 32n + 30n],
  ['ids of a server that has run for years', 2n ** 40n - 2n ** 33n, 2n ** 40n + 2n ** 33n],
])('a transaction is over where PostgreSQL says that a snapshot shows it: %s', async (_, least, most) => {
  await assert(
    asyncProperty(ids(least, most), async (some) => {
      const [xmin = 0n, ...others] = [...some].sort((one, other) => (one < other ? -1 : 1));
      const xmax = others.pop() ?? xmin;
      // Every other one is underway, the first included.
      const underway = [xmin, ...others].filter((_, index) => index % 2 === 0);
      const text = `${xmin}:${xmax}:${underway}`;
      const asked = [...some, xmin - 1n, xmin + 1n, xmax - 1n, xmax + 1n].filter(isOfTransaction);
      const { rows } = await database.pool.query<{ id: string; over: boolean }>(
        'SELECT id, pg_visible_in_snapshot(id::xid8, $1::pg_snapshot) AS over FROM unnest($2::text[]) AS id',
        [text, asked.map(String)],
      );
      const snapshot = parseSnapshot(text);
      for (const { id, over } of rows)
        expect(isOver(Number(BigInt.asUintN(32, BigInt(id))), snapshot), `${id} in ${text}`).toBe(over);
    }),
    { numRuns: 50 },
  );
});

it('the text of a snapshot of this server is understood', async () => {
  const client = await database.pool.connect();
  await client.query('BEGIN');
  const { rows } = await client.query<{ own: string }>('SELECT pg_current_xact_id()::text AS own');
  const own = Number(BigInt.asUintN(32, BigInt(rows[0]?.own ?? '')));
  const read = async () => {
    const snapshots = await database.pool.query<{ text: string }>(
      'SELECT pg_current_snapshot()::text AS text',
    );
    return parseSnapshot(snapshots.rows[0]?.text ?? '');
  };
  expect(isOver(own, await read())).toBe(false);
  await client.query('COMMIT');
  expect(isOver(own, await read())).toBe(true);
  client.release();
});
