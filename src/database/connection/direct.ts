/** Checks that DATABASE_URL and DATABASE_DIRECT_URL lead to the same database. */

import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import { SetupError, withoutPassword } from '../../errors.ts';
import { connectionError } from '../connectionError.ts';
import { createSession } from '../session.ts';
import { type ServerConfig, serverOf } from './client.ts';

/**
 * Returns the connection of DATABASE_DIRECT_URL.
 * @throws {SetupError} if it cannot be used, or leads to another database than DATABASE_URL.
 */
export async function findDirect(url: string, directUrl: string): Promise<ServerConfig> {
  const direct = serverOf(directUrl);
  const [one, other] = [createSession(serverOf(url)), createSession(direct)];
  try {
    await one.client.connect().catch((error) => {
      throw connectionError(url, one.client, error);
    });
    const difference = await other.client
      .connect()
      .then(() => findDifference(one.client, other.client))
      .catch((error) => {
        throw connectionError(directUrl, other.client, error, 'DATABASE_DIRECT_URL');
      });
    if (difference === undefined) return direct;
    const shown = JSON.stringify(withoutPassword(directUrl));
    throw new SetupError(
      `DATABASE_DIRECT_URL is ${shown}, but leads to ${difference}. Name the same database as DATABASE_URL, past its pooler.`,
    );
  } finally {
    await Promise.all([one.close(), other.close()]);
  }
}

/**
 * Describes where the other connection leads if that is not the same database of the same running server: only then does an
 * advisory lock of one exclude the other. Names, rows and even the system identifier are the same in a copy.
 */
export async function findDifference(one: pg.Client, other: pg.Client): Promise<string | undefined> {
  const lock = randomBytes(8).readBigInt64BE().toString();
  // A pooler may change the session between transactions, so this takes place in one.
  await one.query(`BEGIN; SELECT pg_advisory_xact_lock(${lock})`);
  try {
    const here = await readPlace(one, 'false');
    const there = await readPlace(other, `pg_try_advisory_xact_lock(${lock})`);
    if (there.locks && here.database === there.database)
      return 'another server than DATABASE_URL, a copy or a standby';
    const what = there.locks ? 'database' : 'schema';
    if (here[what] === there[what]) return undefined;
    return `the ${what} ${JSON.stringify(there[what])}, and DATABASE_URL to ${JSON.stringify(here[what])}`;
  } finally {
    await one.query('ROLLBACK');
  }
}

async function readPlace(client: pg.Client, locks: string) {
  const { rows } = await client.query<{ database: string; schema: string | null; locks: boolean }>(
    `SELECT current_database() AS database, current_schema() AS schema, ${locks} AS locks`,
  );
  return rows[0] ?? { database: '', schema: null, locks: true };
}
