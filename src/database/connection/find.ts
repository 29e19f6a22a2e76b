/** Checks that a server can be used, and finds its capabilities. */

import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import { withPlainSslMode } from '../../config/databaseUrl.ts';
import { type Diagnosis, SetupError, withoutPassword } from '../../errors.ts';
import { connectionError, createDatabase } from '../connectionError.ts';
import { checkPooler, isPooled } from '../pooler.ts';
import { createSession } from '../session.ts';

/** The settings that name a server. */
export type ServerSetting = 'DATABASE_URL' | 'DATABASE_DIRECT_URL' | 'DATABASE_REPLICA_URLS';

/** The connection settings of the server that a setting names. */
export const serverOf = (url: string): pg.ClientConfig => ({ connectionString: withPlainSslMode(url) });

/** Names the server that a client connects to: a URL may have host and port in its query, or leave them out. */
export const hostPortText = ({ host, port }: Pick<pg.Client, 'host' | 'port'>): string =>
  `${host.includes(':') ? `[${host}]` : host}:${port}`;

/** The URLs of a server. */
export interface ServerUrls {
  readonly url: string;
  /** Bypasses the pooler that the other URL leads to. */
  readonly directUrl?: string | undefined;
}

interface FoundServer {
  readonly server: pg.ClientConfig;
  readonly direct: pg.ClientConfig;
  /** Whether the connection goes through a pooler. */
  readonly pooled: boolean;
  /** Whether the server supports logical decoding. */
  readonly decodes: boolean;
}

/** The oldest supported major version of PostgreSQL. */
export const oldestServer = 15;

/**
 * Connects to the server that the URLs lead to, and checks it.
 * @throws {SetupError} if it cannot be reached or used.
 */
export async function findServer({ url, directUrl }: ServerUrls): Promise<FoundServer> {
  const server = serverOf(url);
  const { client, close } = createSession(server);
  try {
    await client.connect();
    const { rows } = await client.query<{ version: string; encoding: string; decodes: boolean }>(
      `SELECT current_setting('server_version_num') AS version, current_setting('server_encoding') AS encoding,
         current_setting('wal_level') = 'logical' AS decodes`,
    );
    const version = Math.trunc(Number(rows[0]?.version) / 10_000);
    if (version < oldestServer) {
      throw new SetupError(`DATABASE_URL names a PostgreSQL ${version}, but takes ${oldestServer} or later.`);
    }
    const wrong = findEncodingProblem(client, rows[0]?.encoding);
    if (wrong) throw new SetupError(`DATABASE_URL cannot be used: ${wrong.says}. ${wrong.advice}`);
    const pooled = await isPooled(client);
    if (pooled) await checkPooler(client);
    const direct = directUrl === undefined ? server : await findDirect(url, directUrl);
    return { server, direct, pooled, decodes: rows[0]?.decodes ?? false };
  } catch (error) {
    if (error instanceof SetupError) throw error;
    throw connectionError(url, client, error);
  } finally {
    await close();
  }
}

/** Diagnoses a database with another encoding than UTF-8, in which not every text of a client could be stored. */
export function findEncodingProblem(
  { host, port, user, database = '' }: pg.Client,
  encoding: string | undefined,
): Diagnosis | undefined {
  if (encoding === 'UTF8') return undefined;
  const name = database === 'dovetail' ? 'dovetail_utf8' : 'dovetail';
  return {
    says: `the encoding of the database ${JSON.stringify(database)} is ${encoding}, and has to be UTF8`,
    advice: `${createDatabase({ host, port, user }, name, ['-E', 'UTF8', '-T', 'template0'])}. Name it in DATABASE_URL.`,
  };
}

/**
 * Returns the connection of DATABASE_DIRECT_URL.
 * @throws {SetupError} if it cannot be used, or leads to another database than DATABASE_URL.
 */
async function findDirect(url: string, directUrl: string): Promise<pg.ClientConfig> {
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
 * Describes where the other connection leads, if not to the same database of the same running server. The proof is an advisory lock
 * of one that excludes the other: names, rows and even the system identifier are the same in a copy.
 */
export async function findDifference(one: pg.Client, other: pg.Client): Promise<string | undefined> {
  const lock = randomBytes(8).readBigInt64BE().toString();
  // In one transaction, since a pooler may change the session between transactions.
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
