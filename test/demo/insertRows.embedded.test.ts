/** The rows of the demo account are those that Prisma's client would write, which knows the model by heart. */

import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { loadDemoData } from '../../src/demo/demoData.ts';
import { insertRows } from '../../src/demo/insertRows.ts';
import { openTestDatabase, type TestDatabase } from '../support/gateway.ts';

vi.mock('../../src/demo/insertRows.ts', { spy: true });

let database: TestDatabase;
beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database?.close());

/** What a client of Prisma's has for each model that is used here. */
interface Table {
  createManyAndReturn(query: object): Promise<{ id: number }[]>;
}

/** All rows of all tables of the model, after the demo account was loaded. */
async function load(): Promise<Record<string, object[]>> {
  const { pool } = database;
  await pool.query('TRUNCATE "User" RESTART IDENTITY CASCADE');
  const connection = await pool.connect();
  await loadDemoData(connection, new Date('2026-02-17T12:34:56.789Z')).finally(() => connection.release());
  const { rows: tables } = await pool.query<{ name: string }>(
    `SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema() AND tablename !~ '^_' ORDER BY 1`,
  );
  const found: Record<string, object[]> = {};
  for (const { name } of tables)
    found[name] = (await pool.query(`SELECT * FROM "${name}" ORDER BY 1, 2`)).rows;
  return found;
}

it('writes what the client of Prisma’s writes', async () => {
  const own = await load();
  vi.mocked(insertRows).mockImplementation((async (_: unknown, model: string, data: object[]) => {
    // The client has one by the name of each model.
    const tables = database.client as unknown as Record<string, Table>;
    const table = tables[model.charAt(0).toLowerCase() + model.slice(1)];
    return (await table?.createManyAndReturn({ data, select: { id: true } }))?.map(({ id }) => id);
  }) as unknown as typeof insertRows);
  expect(await load()).toEqual(own);
  expect(
    Object.entries(own)
      .filter(([, rows]) => rows.length === 0)
      .map(([name]) => name),
  ).toEqual(['ApiToken', 'Mirror', 'MirroredAccount', 'RateLimit']);
});
