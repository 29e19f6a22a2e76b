/** API tokens: opaque, random, and stored only as a digest and the first characters. */

import { hash, randomBytes } from 'node:crypto';
import { GraphQLError } from 'graphql';
import type pg from 'pg';
import type { ApiToken } from '../database/generated/prisma/client.ts';
import type { Sql } from '../database/reader/sql.ts';
import { inTransaction } from '../database/transaction.ts';
import { beyondScope, type ErrorCode, tokenMessages, unauthenticated } from '../errors.ts';
import { allows, localScope, remoteScope, type Scope, type StoredScope } from './scopes.ts';

/** Lets a secret scanner, and a reader of a configuration file, recognise a token. */
const prefix = 'dvt_';
const randomLength = 32;
const format = new RegExp(`^${prefix}[A-Za-z0-9_-]{${Math.ceil((randomLength * 4) / 3)}}$`);

/** The tier that is needed to create tokens. Existing tokens of a user who leaves it stay valid. */
export const requiredTier = 'ultra';
export const maxActiveTokens = 5;

/** The slots of active tokens. In the database a slot of a user can have only one active token. */
const slots = Array.from({ length: maxActiveTokens }, (_, index) => index + 1);

interface IssuedToken {
  id: number;
  /** The secret itself: shown now and never again. */
  token: string;
}

/** A token as its owner sees it. */
export interface Token {
  readonly id: number;
  readonly name: string;
  readonly scope: StoredScope;
  readonly createdAt: Date;
  readonly lastUsedAt: Date | null;
  readonly expiresAt: Date | null;
}

/** The condition that a token is active now. */
export const activeNow = () => ({
  revokedAt: null,
  OR: [{ expiresAt: null }, { expiresAt: { gt: new Date() } }],
});

/** The condition on the tokens that a viewer sees. A token that may not manage them sees itself alone. */
export const seenBy = ({ tokenId = 0, scope }: { tokenId: number | undefined; scope: Scope }) => ({
  ...activeNow(),
  ...(!allows(scope, 'manage') && { id: tokenId }),
});

/** A token that was presented. It may have expired. */
export interface FoundToken extends Pick<Token, 'id' | 'scope' | 'lastUsedAt'> {
  readonly userId: number;
  /** The digest of the secret that was presented, in hex. */
  readonly digest: string;
  /** When the secret expires, or has expired. Infinite for one that does not. */
  readonly validUntil: number;
}

/** What a new token is to be. */
interface WantedToken {
  readonly name: string;
  /** By default `activate`. */
  readonly scope?: StoredScope;
  readonly expiresAt?: Date | null | undefined;
}

type Owner = { readonly username: string } | { readonly id: number };

/** A connection, or a pool of them. */
type Database = Pick<pg.ClientBase, 'query'>;

/** The reason why a token was not created, rotated or revoked. Clients see it as well. */
export class TokenError extends GraphQLError {
  constructor(
    message: string,
    { argument, code = 'BAD_USER_INPUT' }: { argument?: string; code?: ErrorCode } = {},
  ) {
    super(message, { extensions: { code, ...(argument !== undefined && { argument }) } });
  }
}

/** SHA-256 in hex. It suffices where a password would need more: 256 random bits cannot be guessed. */
export function digestOf(token: string): string {
  return hash('sha256', token, 'hex');
}

/** Whether a text has the form of a token. Any other text needs no query to be rejected. */
export function isToken(text: string): boolean {
  return format.test(text);
}

/** The active token of a secret, or null if it is malformed, unknown, revoked or expired. */
export async function findToken(sql: Sql, token: string): Promise<FoundToken | null> {
  const found = isToken(token) ? (await findTokens(sql, [digestOf(token)])).get(digestOf(token)) : undefined;
  return found && found.validUntil > Date.now() ? found : null;
}

/** The tokens of secrets that are not revoked, by the digests of the secrets. */
export async function findTokens(
  sql: Pick<Sql, 'run'>,
  digests: readonly string[],
): Promise<Map<string, FoundToken>> {
  // A token that expired and then lost its slot stays expired, even if the clock is set back.
  const rows = await sql.run<Omit<FoundToken, 'validUntil'> & { validUntil: Date | number | null }>(
    `SELECT id, "userId", scope, "lastUsedAt", encode(secret, 'hex') AS digest,
       CASE WHEN "revokedAt" IS NOT NULL THEN to_timestamp(0) WHEN digest = secret THEN "expiresAt"
         ELSE least("expiresAt", "previousValidUntil") END AS "validUntil"
     FROM unnest($1::bytea[]) AS secret JOIN "ApiToken" ON digest = secret OR "previousDigest" = secret
     WHERE "revokedAt" IS NULL OR "expiresAt" <= "revokedAt"`,
    [digests.map((digest) => Buffer.from(digest, 'hex'))],
  );
  return new Map(
    rows.map((row) => [
      row.digest,
      { ...row, validUntil: row.validUntil?.valueOf() ?? Number.POSITIVE_INFINITY },
    ]),
  );
}

/**
 * Locks the viewer's own token and the user until the end of the transaction, so that nothing is changed by a token that has ended
 * since its request arrived, and nothing after its end has been acknowledged.
 * @returns until when the token is valid, in milliseconds since the epoch.
 * @throws {GraphQLError} if the token has ended, or may no longer manage tokens.
 */
export async function lockViewer(
  client: Database,
  {
    id,
    tokenId,
    digest = '',
    isOnLoopback = false,
  }: {
    readonly id: number;
    readonly tokenId: number | undefined;
    readonly digest?: string;
    readonly isOnLoopback?: boolean;
  },
): Promise<number> {
  const run = async <Row extends object>(text: string, values: readonly unknown[]) =>
    (await client.query<Row>(text, [...values])).rows;
  // The user first, as in `addToken`: two tokens that revoke each other take turns.
  await run('SELECT FROM "User" WHERE id = $1 FOR UPDATE', [id]);
  await run('SELECT FROM "ApiToken" WHERE id = $1 FOR NO KEY UPDATE', [tokenId]);
  const found = (await findTokens({ run }, [digest])).get(digest);
  const { validUntil = 0, scope = 'read' } = found ?? {};
  if (validUntil <= Date.now()) throw unauthenticated(validUntil > 0 ? 'expired' : 'invalid');
  if (!allows(isOnLoopback ? localScope(scope) : remoteScope(scope), 'manage'))
    throw beyondScope('manage', false);
  return validUntil;
}

/** Creates a token. @throws {TokenError} for what `addToken` rejects. */
export const createToken = (
  pool: pg.Pool,
  username: string,
  name: string,
  others: Omit<WantedToken, 'name'> = {},
): Promise<IssuedToken> =>
  inTransaction(pool, async (client) => {
    const { secret, token } = await addToken(client, { username }, { ...others, name });
    return { id: token.id, token: secret };
  });

/**
 * Creates a token within a transaction.
 * @throws {TokenError} for an invalid name, one that an active token has, a time that is past, an unknown user, a user below the
 * ultra tier, a user with five active tokens, or a user, named by the id, who has created many within an hour.
 */
export async function addToken(
  client: Database,
  owner: Owner,
  { name: given, scope = 'activate', expiresAt = null }: WantedToken,
): Promise<{ readonly secret: string; readonly token: ApiToken }> {
  const now = new Date();
  const name = given.trim().normalize('NFC');
  const problem = problemOfName(name);
  if (problem !== undefined) throw new TokenError(problem, { argument: 'name' });
  if (expiresAt && expiresAt <= now) throw new TokenError(tokenMessages.past, { argument: 'expiresAt' });
  // The row lock makes two creations for one user take turns, so that both cannot take the last place.
  const [column, value] = 'id' in owner ? ['id', owner.id] : ['username', owner.username];
  const {
    rows: [user],
  } = await client.query<{ id: number; tier: string | null }>(
    `SELECT id, "subscriptionTier" AS tier FROM "User" WHERE ${column} = $1 FOR UPDATE`,
    [value],
  );
  if (!user) throw unknownUser(String(value));
  if (user.tier !== requiredTier) throw new TokenError(tokenMessages.tier(user.tier), { code: 'FORBIDDEN' });
  await client.query(
    `UPDATE "ApiToken" SET "revokedAt" = "expiresAt"
     WHERE "userId" = $1 AND "revokedAt" IS NULL AND "expiresAt" <= $2`,
    [user.id, now],
  );
  const { rows: active } = await client.query<{ slot: number; name: string }>(
    'SELECT slot, name FROM "ApiToken" WHERE "userId" = $1 AND "revokedAt" IS NULL',
    [user.id],
  );
  if (active.some((each) => each.name === name))
    throw new TokenError(tokenMessages.taken(name), { argument: 'name' });
  if ('id' in owner && (await hasCreatedMany(client, user.id)))
    throw new TokenError(tokenMessages.tooOften(mostAnHour), { code: 'TOO_MANY_REQUESTS' });
  const slot = slots.find((each) => !active.some((other) => other.slot === each));
  if (slot === undefined) throw new TokenError(tokenMessages.tooMany(maxActiveTokens), { code: 'FORBIDDEN' });
  const secret = newSecret();
  const {
    rows: [token],
  } = await client.query<ApiToken>(
    `INSERT INTO "ApiToken" ("userId", name, scope, "expiresAt", slot, digest, prefix)
     VALUES ($1, $2, $3, $4, $5, decode($6, 'hex'), $7) RETURNING *`,
    [user.id, name, scope, expiresAt, slot, digestOf(secret), prefixOf(secret)],
  );
  if (!token) throw new Error('the database has added no token');
  return { secret, token };
}

/**
 * How many tokens an account may create in an hour by itself. Each has a rate limit of its own, and its row stays: without this one,
 * an account that creates and revokes them all the time would have no limit.
 */
const mostAnHour = 20;

async function hasCreatedMany(client: Database, userId: number): Promise<boolean> {
  const { rowCount } = await client.query(
    `SELECT FROM (SELECT "createdAt" FROM "ApiToken" WHERE "userId" = $1 ORDER BY id DESC LIMIT $2) AS newest
     WHERE "createdAt" > now() - interval '1 hour'`,
    [userId, mostAnHour],
  );
  return rowCount === mostAnHour;
}

/** What its owner recognises a token by. The rest has 232 random bits. */
const prefixOf = (token: string) => token.slice(0, prefix.length + 4);

const newSecret = () => prefix + randomBytes(randomLength).toString('base64url');

/** In characters. */
const longestName = 100;

function problemOfName(name: string): string | undefined {
  if (name === '') return tokenMessages.unnamed;
  // Line breaks, what terminals obey and what is not seen would make a list of tokens say what it does not.
  if (/[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u.test(name)) return tokenMessages.invisible;
  return Array.from(name).length > longestName ? tokenMessages.longName(longestName) : undefined;
}

/** Whether a token is active. One that expired and then lost its slot to another counts as expired. */
export function stateOf({
  expiresAt,
  revokedAt,
}: Pick<Token, 'expiresAt'> & { readonly revokedAt: Date | null }): 'active' | 'expired' | 'revoked' {
  if (expiresAt && expiresAt <= (revokedAt ?? new Date())) return 'expired';
  return revokedAt ? 'revoked' : 'active';
}

/**
 * The user's tokens without their secrets, newest first.
 * @throws {TokenError} for an unknown user.
 */
export async function listTokens(sql: Sql, username: string) {
  const [user] = await sql.run<{ id: number }>('SELECT id FROM "User" WHERE username = $1', [username]);
  if (!user) throw unknownUser(username);
  return sql.run<Token & { readonly prefix: string | null; readonly revokedAt: Date | null }>(
    `SELECT id, name, prefix, scope, "createdAt", "lastUsedAt", "expiresAt", "revokedAt"
     FROM "ApiToken" WHERE "userId" = $1 ORDER BY id DESC`,
    [user.id],
  );
}

const unknownUser = (username: string) =>
  new TokenError(`There is no user named ${JSON.stringify(username)}`);

/**
 * Revokes a token.
 * @param userId for another user the token does not exist. By default it may be anybody's.
 * @throws {TokenError} when no active token has the id.
 */
export async function revokeToken(database: Database, id: number, userId?: number): Promise<ApiToken> {
  const { rows } = await database.query<ApiToken>(
    `UPDATE "ApiToken" SET "revokedAt" = $2
     WHERE id = $1 AND "revokedAt" IS NULL AND ("expiresAt" IS NULL OR "expiresAt" > $2)
       AND ($3::integer IS NULL OR "userId" = $3) RETURNING *`,
    [id, new Date(), userId],
  );
  return rows[0] ?? noActive(id);
}

/**
 * Gives a token a new secret. The token keeps its number, name, scope and slot.
 * @param keep how long, in milliseconds, the secret that is replaced stays valid. The one before that is invalid at once.
 * @throws {TokenError} when no active token has the id.
 */
export async function rotateToken(database: Database, id: number, keep: number): Promise<IssuedToken> {
  const token = newSecret();
  const now = Date.now();
  const { rowCount } = await database.query(
    `UPDATE "ApiToken" SET "previousDigest" = digest, "previousValidUntil" = $3, digest = decode($4, 'hex'), prefix = $5
     WHERE id = $1 AND "revokedAt" IS NULL AND ("expiresAt" IS NULL OR "expiresAt" > $2)`,
    [id, new Date(now), new Date(now + keep), digestOf(token), prefixOf(token)],
  );
  return rowCount === 0 ? noActive(id) : { id, token };
}

function noActive(id: number): never {
  throw new TokenError(tokenMessages.noActive(id), { argument: 'token', code: 'NOT_FOUND' });
}
