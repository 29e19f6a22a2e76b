/** Creates and lists users, and changes their tier. A mirror only lists them: its users come from the upstream. */

import type { Sql } from '../database/reader/sql.ts';
import { SetupError } from '../errors.ts';

/**
 * Creates a user, and returns their id.
 * @throws {SetupError} for an invalid name, for a taken name (ignoring case), and for a mirror, whose users come from the
 * upstream.
 */
export async function createUser(sql: Sql, username: string, tier: string): Promise<number> {
  if (username.trim() !== username || username === '' || /\p{C}/u.test(username))
    throw new SetupError(
      `The name ${JSON.stringify(username)} cannot be used: it takes visible characters, and no space at either end.`,
    );
  await rejectMirror(sql);
  // The message shows the stored name, since other commands need its case.
  const [taken] = await sql.run<{ username: string }>(
    'SELECT username FROM "User" WHERE lower(username) = lower($1)',
    [username],
  );
  if (taken) throw new SetupError(`There is already a user named ${JSON.stringify(taken.username)}.`);
  const [user] = await sql.run<{ id: number }>(
    'INSERT INTO "User" (username, "subscriptionTier") VALUES ($1, $2) RETURNING id',
    [username, tier],
  );
  if (!user) throw new Error('the database has added no user');
  return user.id;
}

/** The number of active tokens of a user, in SQL. */
const tokens = `(SELECT count(*)::int FROM "ApiToken" WHERE "userId" = "User".id AND "revokedAt" IS NULL
  AND ("expiresAt" IS NULL OR "expiresAt" > now())) AS tokens`;

/** All users, by name, with the number of their active tokens. The tier is null if a mirror does not know it. */
export const listUsers = (sql: Sql) =>
  sql.run<{ id: number; username: string; tier: string | null; tokens: number }>(
    `SELECT id, username, "subscriptionTier" AS tier, ${tokens} FROM "User" ORDER BY username`,
    [],
  );

/**
 * Moves a user to another tier, and returns how many active tokens they have.
 * @throws {SetupError} for an unknown user, and for a mirror.
 */
export async function setTier(sql: Sql, username: string, tier: string): Promise<number> {
  await rejectMirror(sql);
  const [user] = await sql.run<{ tokens: number }>(
    `UPDATE "User" SET "subscriptionTier" = $2 WHERE username = $1 RETURNING ${tokens}`,
    [username, tier],
  );
  if (!user) throw new SetupError(`There is no user named ${JSON.stringify(username)}.`);
  return user.tokens;
}

/** The tier of a user, or undefined if there is no such user. */
export async function findTier(sql: Sql, username: string): Promise<string | null | undefined> {
  const text = 'SELECT "subscriptionTier" AS tier FROM "User" WHERE username = $1';
  return (await sql.run<{ tier: string | null }>(text, [username]))[0]?.tier;
}

/** Whether there are users. */
export const hasUsers = async (sql: Sql): Promise<boolean> =>
  (await sql.run('SELECT FROM "User" LIMIT 1', [])).length > 0;

/** Whether the users are accounts of an upstream. */
export const isMirror = async (sql: Sql): Promise<boolean> => (await sql.count('Mirror', {})) > 0;

async function rejectMirror(sql: Sql): Promise<void> {
  if (await isMirror(sql))
    throw new SetupError(
      'This database mirrors accounts that live elsewhere, which is all that it may have: name another database in DATABASE_URL or DATA_DIR.',
    );
}
