/** Usernames in a mirror, where no two may differ by case alone, as they may upstream. */

import type pg from 'pg';
import type { Row } from './records.ts';
import { acquireSharedLock } from './sharedLock.ts';

/**
 * Returns the account with a username that it can have here. If another account has exactly this name, it was renamed upstream
 * since it was read last, and loses the name. If the names differ by case, the account gets its id behind its name.
 */
export async function withFreeName(client: pg.PoolClient, account: Row): Promise<Row> {
  const { id, username } = account;
  await acquireSharedLock(client);
  const { rows } = await client.query<{ username: string }>(
    'SELECT username FROM "User" WHERE lower(username) = lower($2) AND id <> $1',
    [id, username],
  );
  const [other] = rows;
  if (!other) return account;
  if (other.username !== username) return { ...account, username: `${username} (id ${id})` };
  await takeName(client, account);
  return account;
}

/** Renames the other account that has this name: it has its id behind the name until its new name is read. */
async function takeName(client: pg.PoolClient, { id, username }: Row): Promise<void> {
  await client.query(
    `UPDATE "User" AS stale SET username = (
       SELECT name FROM generate_series(1, 100) AS times, concat(stale.username, repeat(' (id ' || stale.id || ')', times)) AS name
       WHERE NOT EXISTS (SELECT FROM "User" WHERE lower(username) = lower(name)) ORDER BY times LIMIT 1)
     WHERE username = $2 AND id <> $1`,
    [id, username],
  );
}
