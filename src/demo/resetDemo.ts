/**
 * Replaces the demo account and all its data by a new one. It is SQL: one transaction empties the tables, and loads the account as a
 * first start does.
 */

import type pg from 'pg';
import { hasField, tables } from '../database/models.ts';
import { inTransaction } from '../database/transaction.ts';
import { SetupError } from '../errors.ts';
import { demoUsername, loadDemoData } from './demoData.ts';

/** The names of the users that belong to the demo account. */
const demoUsers = [demoUsername, 'coach'];

/**
 * All tables except the counts of the rate limit, quoted. They are emptied by name: CASCADE would also empty tables of other programs
 * that refer to them.
 */
const emptied = tables.filter((table) => table !== 'RateLimit').map((table) => `"${table}"`);

/** The public ids of all records that have one. */
const recorded = tables
  .filter((table) => hasField(table, 'bubbleId'))
  .map((table) => `SELECT "bubbleId" FROM "${table}"`);

/** Whether the database is empty, or has records of the demo account and nothing else. Names of users alone do not show that. */
const census = `
  WITH known AS (SELECT id FROM "User" WHERE username IN (${demoUsers.map((name) => `'${name}'`).join()})),
    records AS (${recorded.join(' UNION ALL ')})
  SELECT NOT EXISTS (SELECT FROM "Mirror") AND (NOT EXISTS (SELECT FROM "User") OR
    EXISTS (SELECT FROM records) AND NOT EXISTS (SELECT FROM records WHERE "bubbleId" NOT LIKE '%-demo-%')
      AND NOT EXISTS (SELECT FROM "User" WHERE id NOT IN (SELECT id FROM known))) AS "isOnlyDemo"`;

/** @throws {SetupError} for a database that has any other data. Nothing is changed. */
export async function checkOnlyDemo(database: Pick<pg.ClientBase, 'query'>): Promise<void> {
  const { rows } = await database.query<{ isOnlyDemo: boolean }>(census);
  if (rows[0]?.isOnlyDemo) return;
  throw new SetupError(
    'This database has users or records of its own, or mirrors accounts, and the demo account wants one for itself: name another database in DATABASE_URL or DATA_DIR. There is no way back but to start over: stop the gateway and remove the folder postgres in DATA_DIR; on a server, make a new database.',
  );
}

/**
 * Replaces all data of the database by a new demo account. The tokens of the account stay valid: a running gateway shows
 * one of them, and others may be in use.
 * @throws {SetupError} for a database that has any other data. Nothing is changed then.
 */
export async function resetDemo(pool: pg.Pool): Promise<void> {
  await inTransaction(pool, replaceAll);
}

async function replaceAll(client: pg.PoolClient): Promise<void> {
  // The locks keep others from adding users or mirrors until the transaction ends.
  await client.query('LOCK TABLE "User", "Mirror" IN SHARE ROW EXCLUSIVE MODE');
  await checkOnlyDemo(client);
  // As JSON, so that all columns are restored.
  const { rows: tokens } = await client.query<{ token: string }>(
    `SELECT to_jsonb(t)::text AS token FROM "ApiToken" t JOIN "User" u ON u.id = "userId" WHERE username = $1 ORDER BY t.id`,
    [demoUsername],
  );
  // The ids begin again, as those of a new database do.
  await client.query(`TRUNCATE ${emptied.join()} RESTART IDENTITY`);
  await loadDemoData(client, new Date());
  for (const { token } of tokens)
    await client.query(
      `INSERT INTO "ApiToken" SELECT (jsonb_populate_record(NULL::"ApiToken", $1::jsonb || jsonb_build_object(
        'id', nextval(pg_get_serial_sequence('"ApiToken"', 'id')),
        'userId', (SELECT id FROM "User" WHERE username = $2)))).*`,
      [token, demoUsername],
    );
}
