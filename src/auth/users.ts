/** Creates and lists users, and changes their tier. Users that belong to an extension are only listed. */

import type pg from 'pg';
import type { PrismaClient } from '../database/generated/prisma/client.ts';
import { SetupError, systemCodeOf } from '../errors.ts';
import { activeNow } from './tokens.ts';

/** To whom the users of a database may belong, besides itself. Then nobody is added or changed here. */
export interface AccountOwner {
  /** The table that has rows if they do. */
  readonly table: string;
  /** Why a user cannot be added or changed. */
  readonly rejection: string;
  /** The sentence behind an error about a user. */
  readonly note: string;
  /** How the first account comes here: the end of a sentence, and a command. */
  readonly arrival: readonly [text: string, command: string];
}

/**
 * Creates a user, and returns their id.
 * @throws {SetupError} for an invalid name, for a taken name (ignoring case), and for a database whose users belong to one of the owners.
 */
export async function createUser(
  client: PrismaClient,
  username: string,
  tier: string,
  owners: readonly AccountOwner[] = [],
): Promise<number> {
  if (username.trim() !== username || username === '' || /\p{C}/u.test(username))
    throw new SetupError(
      `The name ${JSON.stringify(username)} cannot be used: it takes visible characters, and no space at either end.`,
    );
  await rejectOwned(client, owners);
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
const countTokens = () => ({ select: { tokens: { where: activeNow() } } });

/** All users, by name, with the number of their active tokens. The tier is null if it is not known. */
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
 * @throws {SetupError} for an unknown user, and for a database whose users belong to one of the owners.
 */
export async function setTier(
  client: PrismaClient,
  username: string,
  tier: string,
  owners: readonly AccountOwner[] = [],
): Promise<number> {
  await rejectOwned(client, owners);
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

/** The tier of a user: null if it is not known, undefined if there is no such user. */
export async function findTier(client: PrismaClient, username: string): Promise<string | null | undefined> {
  const user = await client.user.findUnique({ where: { username }, select: { subscriptionTier: true } });
  return user?.subscriptionTier;
}

/** Whether there are users. A start calls this, so it avoids Prisma's client, which takes long to load. */
export async function hasUsers(pool: pg.Pool): Promise<boolean> {
  return (await pool.query('SELECT FROM "User" LIMIT 1')).rowCount !== 0;
}

/** The owner of the users of a database; undefined if they are its own. */
export async function findOwner(
  client: PrismaClient,
  owners: readonly AccountOwner[],
): Promise<AccountOwner | undefined> {
  for (const owner of owners) {
    const rows = await client.$queryRawUnsafe<unknown[]>(`SELECT 1 FROM "${owner.table}" LIMIT 1`);
    if (rows.length > 0) return owner;
  }
  return undefined;
}

async function rejectOwned(client: PrismaClient, owners: readonly AccountOwner[]): Promise<void> {
  const owner = await findOwner(client, owners);
  if (owner) throw new SetupError(owner.rejection);
}
