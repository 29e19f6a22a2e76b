/** API tokens: opaque, random, and stored only as a digest. */

import { hash, randomBytes } from 'node:crypto';
import type pg from 'pg';
import type { PrismaClient } from '../database/generated/prisma/client.ts';
import type { Sql } from '../database/reader/sql.ts';
import { inTransaction } from '../database/transaction.ts';
import { SetupError } from '../errors.ts';

/** Lets a secret scanner, and a reader of a configuration file, recognise a token. */
const prefix = 'dvt_';
const randomLength = 32;
const format = new RegExp(`^${prefix}[A-Za-z0-9_-]{${Math.ceil((randomLength * 4) / 3)}}$`);

/** The tier that is needed to create tokens. Existing tokens of a user who leaves it stay valid. */
export const requiredTier = 'ultra';
export const maxActiveTokens = 5;

/** The slots of active tokens. In the database a slot of a user can have only one active token. */
const slots = Array.from({ length: maxActiveTokens }, (_, index) => index + 1);

export interface IssuedToken {
  id: number;
  /** The secret itself: shown now and never again. */
  token: string;
}

/** A token that was presented. */
export interface FoundToken {
  readonly id: number;
  readonly userId: number;
  readonly lastUsedAt: Date | null;
}

/** The reason why a token was not created or revoked, for the operator. */
export class TokenError extends Error {
  override name = 'TokenError';
}

/** SHA-256 in hex. It suffices where a password would need more: 256 random bits cannot be guessed. */
export function digestOf(token: string): string {
  return hash('sha256', token, 'hex');
}

/** Whether a text has the form of a token. Any other text needs no query to be rejected. */
export function isToken(text: string): boolean {
  return format.test(text);
}

/** The active token of a secret, or null if it is malformed, unknown or revoked. */
export async function findToken(sql: Sql, token: string): Promise<FoundToken | null> {
  return (isToken(token) && (await findTokens(sql, [token])).get(token)) || null;
}

/** The active tokens of secrets, by the secrets. */
export async function findTokens(sql: Sql, tokens: readonly string[]): Promise<Map<string, FoundToken>> {
  const secrets = new Map(tokens.map((token) => [digestOf(token), token]));
  const rows = await sql.run<FoundToken & { digest: string }>(
    `SELECT id, "userId", "lastUsedAt", encode(digest, 'hex') AS digest FROM "ApiToken"
     WHERE digest = ANY($1::bytea[]) AND "revokedAt" IS NULL`,
    [[...secrets.keys()].map((digest) => Buffer.from(digest, 'hex'))],
  );
  return new Map(rows.map((row) => [secrets.get(row.digest) ?? '', row]));
}

/** Whether the secret is a token of this database, active or revoked. */
export async function isIssued(sql: Sql, token: string): Promise<boolean> {
  if (!isToken(token)) return false;
  const rows = await sql.run('SELECT FROM "ApiToken" WHERE digest = $1::bytea', [
    Buffer.from(digestOf(token), 'hex'),
  ]);
  return rows.length > 0;
}

/**
 * Creates a token. This is SQL, since the first start creates one for the demo account, and would take a
 * quarter of a second longer with Prisma's client. The client cannot lock a row either.
 * @throws {TokenError} for an invalid name, an unknown user, a user below the ultra tier, or a user with five active tokens.
 */
export async function createToken(pool: pg.Pool, username: string, name: string): Promise<IssuedToken> {
  if (name.trim() === '')
    throw new SetupError('A token needs a name, so that its owner can tell it from others.');
  // Line breaks and what terminals obey would make a list of tokens say what it does not.
  if (/\p{C}/u.test(name)) throw new SetupError('The name of a token takes visible characters alone.');
  return inTransaction(pool, (client) => addToken(client, username, name));
}

async function addToken(client: pg.PoolClient, username: string, name: string): Promise<IssuedToken> {
  // The row lock makes two creations for one user take turns, so that both cannot take the last place.
  const {
    rows: [user],
  } = await client.query<{ id: number; tier: string | null }>(
    'SELECT id, "subscriptionTier" AS tier FROM "User" WHERE username = $1 FOR UPDATE',
    [username],
  );
  if (!user) throw unknownUser(username);
  if (user.tier !== requiredTier) {
    throw new TokenError(
      `Creating a token needs the ${requiredTier} tier; ${username} has ${JSON.stringify(user.tier)}.`,
    );
  }
  const { rows: active } = await client.query<{ slot: number }>(
    'SELECT slot FROM "ApiToken" WHERE "userId" = $1 AND "revokedAt" IS NULL',
    [user.id],
  );
  const taken = new Set(active.map(({ slot }) => slot));
  const slot = slots.find((each) => !taken.has(each));
  if (slot === undefined) {
    throw new TokenError(`${username} already has ${maxActiveTokens} active tokens. Revoke one first.`);
  }
  const token = prefix + randomBytes(randomLength).toString('base64url');
  const {
    rows: [added],
  } = await client.query<{ id: number }>(
    `INSERT INTO "ApiToken" ("userId", name, slot, digest) VALUES ($1, $2, $3, decode($4, 'hex')) RETURNING id`,
    [user.id, name, slot, digestOf(token)],
  );
  if (!added) throw new Error('the database has added no token');
  return { id: added.id, token };
}

/**
 * The user's tokens without their secrets, newest first.
 * @throws {TokenError} for an unknown user.
 */
export async function listTokens(database: PrismaClient, username: string) {
  const user = await database.user.findUnique({
    where: { username },
    select: {
      tokens: {
        select: { id: true, name: true, createdAt: true, lastUsedAt: true, revokedAt: true },
        orderBy: { id: 'desc' },
      },
    },
  });
  if (!user) throw unknownUser(username);
  return user.tokens;
}

function unknownUser(username: string): TokenError {
  return new TokenError(`There is no user named ${JSON.stringify(username)}.`);
}

/** @throws {TokenError} when no active token has the id. */
export async function revokeToken(database: PrismaClient, id: number): Promise<void> {
  const { count } = await database.apiToken.updateMany({
    where: { id, revokedAt: null },
    data: { revokedAt: new Date() },
  });
  if (count === 0) throw new TokenError(`There is no active token with the id ${id}.`);
}
