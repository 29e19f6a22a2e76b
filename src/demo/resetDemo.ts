/** Loads the demo account anew, whatever became of it. */

import type pg from 'pg';
import { inTransaction } from '../database/transaction.ts';
import { SetupError } from '../errors.ts';
import { demoUsername, loadDemoData } from './demoData.ts';

/** The users that the demo account comes with. */
const ours = [demoUsername, 'coach'];

interface Census {
  readonly isMirror: boolean;
  readonly isEmpty: boolean;
  /** Whether there is something of the demo account's, and nothing else. Names alone do not tell it from somebody else's. */
  readonly isDemo: boolean;
}

const census = `
  WITH known AS (SELECT id FROM "User" WHERE username IN (${ours.map((name) => `'${name}'`).join()})),
    records AS (
      SELECT "bubbleId" FROM "DttDevice" UNION ALL SELECT "bubbleId" FROM "LkbxDevice" UNION ALL SELECT "bubbleId" FROM "OssmDevice"
      UNION ALL SELECT "bubbleId" FROM "DttTemplate" UNION ALL SELECT "bubbleId" FROM "DttSession"
      UNION ALL SELECT "bubbleId" FROM "LockSession")
  SELECT EXISTS (SELECT FROM "Mirror") AS "isMirror", NOT EXISTS (SELECT FROM "User") AS "isEmpty",
    EXISTS (SELECT FROM records) AND NOT EXISTS (SELECT FROM records WHERE "bubbleId" NOT LIKE '%-demo-%')
      AND NOT EXISTS (SELECT FROM "User" WHERE id NOT IN (SELECT id FROM known)) AS "isDemo"`;

/** @throws {SetupError} for a database that holds anything else, of which nothing is touched. */
export async function checkOnlyDemo(pool: pg.Pool): Promise<void> {
  const { rows } = await pool.query<Census>(census);
  reject(rows);
}

/**
 * Replaces everything in the database by the demo account as it comes. The account's tokens stay valid: a gateway that
 * runs shows one of them, and others may be in use.
 * @throws {SetupError} for a database that holds anything else, of which nothing is touched.
 */
export async function resetDemo(pool: pg.Pool): Promise<void> {
  await inTransaction(pool, replaceAll);
}

async function replaceAll(client: pg.PoolClient): Promise<void> {
  // From here on nobody else writes one.
  await client.query('LOCK TABLE "User", "Mirror" IN SHARE ROW EXCLUSIVE MODE');
  reject((await client.query<Census>(census)).rows);
  // Whatever columns a token has.
  const { rows: tokens } = await client.query<{ token: string }>(
    `SELECT to_jsonb(t)::text AS token FROM "ApiToken" t JOIN "User" u ON u.id = "userId" WHERE username = $1 ORDER BY t.id`,
    [demoUsername],
  );
  // All that there is belongs to users; their numbers begin again, as those of a new database do.
  await client.query('TRUNCATE "User" RESTART IDENTITY CASCADE');
  await loadDemoData(client, new Date());
  for (const { token } of tokens)
    await client.query(
      `INSERT INTO "ApiToken" SELECT (jsonb_populate_record(NULL::"ApiToken", $1::jsonb || jsonb_build_object(
        'id', nextval(pg_get_serial_sequence('"ApiToken"', 'id')),
        'userId', (SELECT id FROM "User" WHERE username = $2)))).*`,
      [token, demoUsername],
    );
}

function reject([found]: readonly Census[]): void {
  if (found?.isMirror)
    throw new SetupError(
      'This database mirrors accounts that live elsewhere, which is all that it may have: name another database in DATABASE_URL or DATA_DIR.',
    );
  if (found?.isEmpty || found?.isDemo) return;
  throw new SetupError(
    'This database has users or records of its own, and the demo account wants one for itself: name another database in DATABASE_URL or DATA_DIR. There is no way back but to start over: stop the gateway and remove the folder DATA_DIR with all that is in it; on a server, make a new database.',
  );
}
