/** The users of a database of one's own: created, listed, and moved to another tier. */

import type { Sql } from '../database/reader/sql.ts';
import { SetupError } from '../errors.ts';

export interface ListedUser {
  readonly id: number;
  readonly username: string;
  /** Null where a mirror was not told. */
  readonly tier: string | null;
  /** How many tokens they have that are not revoked. */
  readonly tokens: number;
}

/**
 * Creates a user, and returns their id.
 * @throws {SetupError} for a name that is taken, in whatever case, or that is none; and for a mirror, whose users come
 * from elsewhere.
 */
export async function createUser(sql: Sql, username: string, tier: string): Promise<number> {
  checkWord('name', username);
  checkWord('tier', tier);
  await rejectMirror(sql);
  const [created] = await sql.write<{ id: number }>(
    `INSERT INTO "User" (username, "subscriptionTier")
     SELECT $1, $2 WHERE NOT EXISTS (SELECT FROM "User" WHERE lower(username) = lower($1))
     ON CONFLICT DO NOTHING RETURNING id`,
    [username, tier],
  );
  if (created) return created.id;
  // Other commands take the name as it is written there.
  const [taken] = await sql.run<{ username: string }>(
    'SELECT username FROM "User" WHERE lower(username) = lower($1)',
    [username],
  );
  throw new SetupError(`There is already a user named ${JSON.stringify(taken?.username ?? username)}.`);
}

/** An expression for how many tokens of the user `u` are not revoked. */
const tokensOfUser =
  '(SELECT count(*)::int FROM "ApiToken" t WHERE t."userId" = u.id AND "revokedAt" IS NULL) AS tokens';

/** All users, by name. */
export function listUsers(sql: Sql): Promise<ListedUser[]> {
  return sql.run<ListedUser>(
    `SELECT id, username, "subscriptionTier" AS tier, ${tokensOfUser} FROM "User" u ORDER BY lower(username), id`,
    [],
  );
}

/**
 * Moves a user to another tier, and returns how many tokens they have that are not revoked.
 * @throws {SetupError} for an unknown user, for what is no tier, and for a mirror.
 */
export async function setTier(sql: Sql, username: string, tier: string): Promise<number> {
  checkWord('tier', tier);
  await rejectMirror(sql);
  const [changed] = await sql.write<{ tokens: number }>(
    `UPDATE "User" u SET "subscriptionTier" = $2 WHERE username = $1 RETURNING ${tokensOfUser}`,
    [username, tier],
  );
  if (!changed) throw new SetupError(`There is no user named ${JSON.stringify(username)}.`);
  return changed.tokens;
}

/** The tier of a user, or undefined if there is no such user. */
export async function findTier(sql: Sql, username: string): Promise<string | null | undefined> {
  const [found] = await sql.run<{ tier: string | null }>(
    'SELECT "subscriptionTier" AS tier FROM "User" WHERE username = $1',
    [username],
  );
  return found?.tier;
}

/** Whether there is anybody at all. */
export async function hasUsers(sql: Sql): Promise<boolean> {
  return (await sql.run('SELECT FROM "User" LIMIT 1', [])).length > 0;
}

/** Whether the users are accounts of an upstream. */
export async function isMirror(sql: Sql): Promise<boolean> {
  return (await sql.count('Mirror', {})) > 0;
}

async function rejectMirror(sql: Sql): Promise<void> {
  if (await isMirror(sql))
    throw new SetupError(
      'This database mirrors accounts that live elsewhere, which is all that it may have: name another database in DATABASE_URL or DATA_DIR.',
    );
}

function checkWord(what: 'name' | 'tier', text: string): void {
  if (text.trim() === text && text !== '' && !/\p{C}/u.test(text)) return;
  throw new SetupError(
    `The ${what} ${JSON.stringify(text)} cannot be used: it takes visible characters, and no space at either end.`,
  );
}
