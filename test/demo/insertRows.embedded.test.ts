/** The rows of the demo account are compared with those that Prisma's client writes. */

import type pg from 'pg';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { loadDemoData } from '../../src/demo/demoData.ts';
import { openTestDatabase, type TestDatabase } from '../support/gateway.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database?.close());

/** The method of Prisma's client for a model that is used here. */
interface Table {
  createManyAndReturn(query: object): Promise<{ id: number }[]>;
}

/** Has Prisma's client insert the rows of a statement of `insertRows`, and runs any other statement as it is. */
async function insertByPrisma(statement: string, values: unknown[]): Promise<{ rows: object[] }> {
  const insert = /^INSERT INTO "(\w+)" \((.*?)\) VALUES (.*) RETURNING id$/.exec(statement);
  if (!insert) return database.pool.query(statement, values);
  const [, model = '', columns = '', tuples = ''] = insert;
  const names = columns.split(',').map((column) => column.slice(1, -1));
  const data = [...tuples.matchAll(/\((.*?)\)/g)].map(([, tuple = '']) => {
    const places = tuple.split(',');
    const given = names.flatMap((name, index) => {
      const [, number] = /^\$(\d+)$/.exec(places[index] ?? '') ?? [];
      return number === undefined ? [] : [[name, values[Number(number) - 1]] as const];
    });
    return Object.fromEntries(given);
  });
  // The client has a property for each model, with the model's name.
  const tables = database.client as unknown as Record<string, Table>;
  const rows = await tables[model.charAt(0).toLowerCase() + model.slice(1)]?.createManyAndReturn({
    data,
    select: { id: true },
  });
  return { rows: rows ?? [] };
}

/** All rows of all tables of the model, after the demo account was loaded through this connection. */
async function load(client: pg.PoolClient): Promise<Record<string, object[]>> {
  const { pool } = database;
  await pool.query('TRUNCATE "User" RESTART IDENTITY CASCADE');
  await loadDemoData(client, new Date('2026-02-17T12:34:56.789Z'));
  const { rows: tables } = await pool.query<{ name: string }>(
    `SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema() AND tablename !~ '^_' ORDER BY 1`,
  );
  const found: Record<string, object[]> = {};
  for (const { name } of tables)
    found[name] = (await pool.query(`SELECT * FROM "${name}" ORDER BY 1, 2`)).rows;
  return found;
}

it('insertRows writes the same rows as Prisma’s client', async () => {
  const connection = await database.pool.connect();
  const own = await load(connection).finally(() => connection.release());
  const written = vi.fn(insertByPrisma);
  // Loading uses nothing else of a connection.
  expect(await load({ query: written } as unknown as pg.PoolClient)).toEqual(own);
  expect(written.mock.calls.filter(([statement]) => /RETURNING id$/.test(statement)).length).toBeGreaterThan(
    5,
  );
  expect(
    Object.entries(own)
      .filter(([, rows]) => rows.length === 0)
      .map(([name]) => name),
  ).toEqual(['ApiToken', 'Mirror', 'MirroredAccount', 'RateLimit']);
});
