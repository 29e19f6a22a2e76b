/** Creates and lists users, and changes their tier. A mirror only lists them: its users come from the upstream. */

import type { PrismaClient } from '../database/generated/prisma/client.ts';
import type { Sql } from '../database/reader/sql.ts';
import { SetupError, systemCodeOf } from '../errors.ts';

/**
 * Creates a user, and returns their id.
 * @throws {SetupError} for an invalid name, for a taken name (ignoring case), and for a mirror, whose users come from the
 * upstream.
 */
export async function createUser(client: PrismaClient, username: string, tier: string): Promise<number> {
  if (username.trim() !== username || username === '' || /\p{C}/u.test(username))
    throw new SetupError(
      `The name ${JSON.stringify(username)} cannot be used: it takes visible characters, and no space at either end.`,
    );
  await rejectMirror(client);
  // The message shows the stored name, since other commands need its case. Prisma compares by ILIKE, in which % and _ are wildcards.
  const similar = await client.user.findMany({
    where: { username: { equals: username, mode: 'insensitive' } },
  });
  const taken = similar.find((user) => user.username.toLowerCase() === username.toLowerCase());
  if (taken) throw new SetupError(`There is already a user named ${JSON.stringify(taken.username)}.`);
  const data = { username, subscriptionTier: tier };
  return (await client.user.create({ data, select: { id: true } })).id;
}

/** Prisma's code for a record that is missing. */
const notFound = 'P2025';

/** Counts the active tokens of a user. */
const countTokens = () => ({
  select: {
    tokens: { where: { revokedAt: null, OR: [{ expiresAt: null }, { expiresAt: { gt: new Date() } }] } },
  },
});

/** All users, by name, with the number of their active tokens. The tier is null if a mirror does not know it. */
export async function listUsers(client: PrismaClient) {
  const users = await client.user.findMany({
    select: { id: true, username: true, subscriptionTier: true, _count: countTokens() },
    orderBy: { username: 'asc' },
  });
  return users.map(({ id, username, subscriptionTier: tier, _count }) => ({
    id,
    username,
    tier,
    tokens: _count.tokens,
  }));
}

/**
 * Moves a user to another tier, and returns how many active tokens they have.
 * @throws {SetupError} for an unknown user, and for a mirror.
 */
export async function setTier(client: PrismaClient, username: string, tier: string): Promise<number> {
  await rejectMirror(client);
  try {
    const { _count } = await client.user.update({
      where: { username },
      data: { subscriptionTier: tier },
      select: { _count: countTokens() },
    });
    return _count.tokens;
  } catch (error) {
    if (systemCodeOf(error) !== notFound) throw error;
    throw new SetupError(`There is no user named ${JSON.stringify(username)}.`, { cause: error });
  }
}

/** The tier of a user, or undefined if there is no such user. */
export async function findTier(client: PrismaClient, username: string): Promise<string | null | undefined> {
  const user = await client.user.findUnique({ where: { username }, select: { subscriptionTier: true } });
  return user?.subscriptionTier;
}

/** Whether there are users. A start calls this, so it avoids Prisma's client, which takes long to load. */
export async function hasUsers(sql: Sql): Promise<boolean> {
  return (await sql.run('SELECT FROM "User" LIMIT 1', [])).length > 0;
}

/** Whether the users are accounts of an upstream. */
export async function isMirror(client: PrismaClient): Promise<boolean> {
  return (await client.mirror.count()) > 0;
}

async function rejectMirror(client: PrismaClient): Promise<void> {
  if (await isMirror(client))
    throw new SetupError(
      'This database mirrors accounts that live elsewhere, which is all that it may have: name another database in DATABASE_URL or DATA_DIR.',
    );
}
