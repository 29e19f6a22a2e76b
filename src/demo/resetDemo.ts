/** Loads the demo account anew, whatever became of it. */

import type pg from 'pg';
import type { Prisma } from '../database/generated/prisma/client.ts';
import { SetupError } from '../errors.ts';
import { loadingLimit } from './demoAccount.ts';
import { demoUsername, loadDemoData } from './demoData.ts';

/** The users that the demo account comes with. */
const ours = [demoUsername, 'coach'];

/** @throws {SetupError} for a database that holds anything else, of which nothing is touched. */
export async function checkOnlyDemo(pool: pg.Pool | pg.ClientBase): Promise<void> {
  const { rows } = await pool.query<{ others: number; mirrored: boolean }>(
    `SELECT count(*)::int AS others, EXISTS (SELECT FROM "Mirror") AS mirrored
     FROM "User" WHERE NOT username = ANY ($1)`,
    [ours],
  );
  const [{ others, mirrored } = { others: 0, mirrored: false }] = rows;
  reject(others, mirrored);
}

/**
 * Replaces everything in the database by the demo account as it comes. The account's tokens stay valid: a gateway that
 * runs shows one of them, and others may be in use.
 * @throws {SetupError} for a database that holds anything else, of which nothing is touched.
 */
export async function resetDemo(pool: pg.Pool): Promise<void> {
  const { openClient } = await import('../database/client.ts');
  await openClient(pool).$transaction(replaceAll, { timeout: loadingLimit });
}

async function replaceAll(database: Prisma.TransactionClient): Promise<void> {
  // From here on nobody else writes one.
  await database.$executeRaw`LOCK TABLE "User", "Mirror" IN SHARE ROW EXCLUSIVE MODE`;
  const others = await database.user.count({ where: { username: { notIn: ours } } });
  reject(others, (await database.mirror.count()) > 0);
  // Whatever columns a token has.
  const tokens = await database.$queryRaw<{ token: Prisma.InputJsonValue }[]>`
    SELECT to_jsonb(t) AS token FROM "ApiToken" t JOIN "User" u ON u.id = "userId" WHERE username = ${demoUsername} ORDER BY t.id`;
  // All that there is belongs to users; their numbers begin again, as those of a new database do.
  await database.$executeRaw`TRUNCATE "User" RESTART IDENTITY CASCADE`;
  await loadDemoData(database, new Date());
  for (const { token } of tokens)
    await database.$executeRaw`
      INSERT INTO "ApiToken" SELECT (jsonb_populate_record(NULL::"ApiToken", ${token}::jsonb || jsonb_build_object(
        'id', nextval(pg_get_serial_sequence('"ApiToken"', 'id')),
        'userId', (SELECT id FROM "User" WHERE username = ${demoUsername})))).*`;
}

function reject(others: number, isMirror: boolean): void {
  if (isMirror)
    throw new SetupError('This database mirrors an account, which is all that it may have: name another.');
  if (others === 0) return;
  const users = others === 1 ? 'a user' : `${others} users`;
  throw new SetupError(
    `This database has ${users} of its own, and the demo account wants one for itself: name another.`,
  );
}
