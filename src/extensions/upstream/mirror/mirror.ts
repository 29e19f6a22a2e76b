/**
 * The mirror: accounts of one upstream in Dovetail's own database, under the ids that they have upstream. A database that is a mirror
 * holds no other accounts.
 */

import type pg from 'pg';
import { inTransaction } from '../../../database/transaction.ts';
import { SetupError } from '../../../errors.ts';
import { acquireSharedLock, findDiffering, type Row, upsert } from './rows.ts';

/**
 * Adds an account to the mirror if it is not here yet. An empty database becomes a mirror.
 * @throws {SetupError} if the database has other accounts, or mirrors another upstream.
 */
export function addAccount(pool: pg.Pool, source: string, account: Row): Promise<void> {
  return inTransaction(pool, async (client) => {
    // An account that is here needs no lock on the whole table.
    const { rowCount: isHere } = await client.query(
      'SELECT FROM "Mirror" WHERE source = $1 AND EXISTS (SELECT FROM "MirroredAccount" WHERE "userId" = $2)',
      [source, account.id],
    );
    if (isHere === 1) return;
    // Two first runs at once would both find the database empty.
    await client.query('LOCK TABLE "Mirror" IN EXCLUSIVE MODE');
    await checkMirror(client, source);
    await client.query('INSERT INTO "Mirror" (source) VALUES ($1) ON CONFLICT DO NOTHING', [source]);
    if (await isMirrored(client, account.id)) return;
    await upsert(client, 'User', [await takeName(client, account)]);
    await client.query('INSERT INTO "MirroredAccount" ("userId") VALUES ($1)', [account.id]);
  });
}

const ownDatabase =
  'A mirror needs a database of its own: set DATA_DIR to an empty folder, or DATABASE_URL to an empty database.';

/**
 * Checks that the database is a mirror of the source, or empty.
 * @throws {SetupError} when it holds other data, or mirrors another source.
 */
export async function checkMirror(client: pg.Pool | pg.PoolClient, source: string): Promise<void> {
  const { rows } = await client.query<{ source: string }>('SELECT source FROM "Mirror"');
  const [mirror] = rows;
  if (mirror && mirror.source !== source) {
    throw new SetupError(`The database mirrors ${mirror.source}, not ${source}. ${ownDatabase}`);
  }
  const others = await client.query<{ username: string }>(
    'SELECT username FROM "User" WHERE id NOT IN (SELECT "userId" FROM "MirroredAccount") ORDER BY id LIMIT 1',
  );
  const [other] = others.rows;
  if (other) {
    throw new SetupError(
      `The database holds the account ${JSON.stringify(other.username)}, whose records could have the same ids as those upstream. ${ownDatabase}`,
    );
  }
}

/** Whether a user's account lives upstream. */
export async function isMirrored(pool: pg.Pool | pg.PoolClient, userId: number): Promise<boolean> {
  const { rowCount } = await pool.query('SELECT FROM "MirroredAccount" WHERE "userId" = $1', [userId]);
  return rowCount === 1;
}

/** Writes the row of an account's user. Returns whether it has changed. */
export async function writeUser(client: pg.PoolClient, user: Row): Promise<boolean> {
  const row = await takeName(client, user);
  const { size } = await findDiffering(client, { table: 'User' }, [{ row }]);
  if (size > 0) await upsert(client, 'User', [row]);
  return size > 0;
}

/** What ends the name of an account that has its id in it. `lower` of the database may make an i of other letters. */
const idAtEnd = /\(.d \d+\)$/iu;

/**
 * If an account that was renamed upstream still has this name here, appends its id until it is read again. A name that differs only by
 * case is left: both may be in use upstream.
 * @returns the account as it is to be stored. Its own id follows a name that differs only by case, or that could be another's with its id.
 */
async function takeName(client: pg.PoolClient, user: Row): Promise<Row> {
  await acquireSharedLock(client);
  const values = [user.id, user.username];
  const withId = `username || ' (id ' || id || ')'`;
  await client.query(`UPDATE "User" SET username = ${withId} WHERE username = $2 AND id <> $1`, values);
  const others = 'SELECT FROM "User" WHERE lower(username) = lower($2) AND id <> $1';
  const { rowCount } = await client.query(others, values);
  const isFree = rowCount === 0 && !idAtEnd.test(String(user.username));
  return isFree ? user : { ...user, username: `${user.username} (id ${user.id})` };
}
