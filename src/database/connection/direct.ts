/** Checks that DATABASE_URL and DATABASE_DIRECT_URL lead to the same database. */

import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import { SetupError, withoutPassword } from '../../errors.ts';
import { connectionError } from '../connectionError.ts';
import { createSession } from '../session.ts';
import type { ServerConfig } from './client.ts';

export interface ServerPair {
  readonly server: ServerConfig;
  readonly direct: ServerConfig;
  readonly url: string;
  readonly directUrl: string;
}

/**
 * Checks that DATABASE_DIRECT_URL leads to the same database as DATABASE_URL.
 * @throws {SetupError} if it does not, or if one of them cannot be used.
 */
export async function checkDirect({ server, direct, url, directUrl }: ServerPair): Promise<void> {
  const one = createSession(server);
  const other = createSession(direct);
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
    if (difference === undefined) return;
    const shown = JSON.stringify(withoutPassword(directUrl));
    throw new SetupError(
      `DATABASE_DIRECT_URL is ${shown}, but leads to ${difference}. Name the same database as DATABASE_URL, past its pooler.`,
    );
  } finally {
    await Promise.all([one.close(), other.close()]);
  }
}

/** Describes where the other connection leads if that is another database; undefined if both lead to the same one. */
export async function findDifference(one: pg.Client, other: pg.Client): Promise<string | undefined> {
  const isSame = await shareLocks(one, other);
  const [here, there] = [await readSessionInfo(one), await readSessionInfo(other)];
  if (!isSame) {
    if (there.isStandby) return 'a standby';
    if (here.database !== there.database)
      return `the database ${JSON.stringify(there.database)}, and DATABASE_URL to ${JSON.stringify(here.database)}`;
    return 'another server than DATABASE_URL, or a copy';
  }
  if (here.schema !== there.schema)
    return `the schema ${JSON.stringify(there.schema)}, and DATABASE_URL to ${JSON.stringify(here.schema)}`;
  return undefined;
}

/**
 * Whether both clients use the same database of the same running server: only then does an advisory lock of one exclude the
 * other. Names, rows and even the system identifier are the same in a copy.
 */
async function shareLocks(one: pg.Client, other: pg.Client): Promise<boolean> {
  const lock = randomBytes(8).readBigInt64BE().toString();
  // A pooler may change the session between transactions, so this takes place in one.
  await one.query(`BEGIN; SELECT pg_advisory_xact_lock(${lock})`);
  try {
    const { rows } = await other.query<{ taken: boolean }>(
      `SELECT pg_try_advisory_xact_lock(${lock}) AS taken`,
    );
    return rows[0]?.taken === false;
  } finally {
    await one.query('ROLLBACK');
  }
}

interface SessionInfo {
  readonly database: string;
  readonly schema: string | null;
  readonly isStandby: boolean;
}

async function readSessionInfo(client: pg.Client): Promise<SessionInfo> {
  const { rows } = await client.query<SessionInfo>(
    `SELECT current_database() AS database, current_schema() AS schema, pg_is_in_recovery() AS "isStandby"`,
  );
  return rows[0] ?? { database: '', schema: null, isStandby: false };
}
