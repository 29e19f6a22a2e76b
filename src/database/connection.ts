/** Checks that a server can be used, finds its capabilities, and tells the operator why it cannot be used. */

import { isIPv6 } from 'node:net';
import pg from 'pg';
import { hasCutPassword, withPlainSslMode } from '../config/databaseUrl.ts';
import { errorText, SetupError, UnusableDatabase, withoutPassword } from '../errors.ts';
import { type Identity, identityColumns } from './identity.ts';
import { checkPooler, createSession, isPooled, isUnresponsive, unresponsive } from './session.ts';

/** The settings that name a server. */
type ServerSetting = 'DATABASE_URL' | 'DATABASE_DIRECT_URL';

/** The connection settings of the server that a setting names. */
export const serverOf = (url: string): pg.ClientConfig => ({ connectionString: withPlainSslMode(url) });

/** Names the server that a client connects to: a URL may have host and port in its query, or leave them out. */
export const hostPortText = ({ host, port }: Pick<pg.Client, 'host' | 'port'>): string =>
  `${isIPv6(host) ? `[${host}]` : host}:${port}`;

export interface ServerUrls {
  readonly url: string;
  /** Bypasses the pooler that the other URL leads to. */
  readonly directUrl?: string | undefined;
}

/** The oldest supported major version of PostgreSQL. */
const oldestServer = 15;

/**
 * Connects to the server that the URLs lead to, and checks it.
 * @throws {SetupError} if it cannot be reached or used.
 */
export async function findServer({ url, directUrl }: ServerUrls) {
  const server = serverOf(url);
  const { client, close } = createSession(server);
  try {
    await client.connect();
    const { rows } = await client.query<{
      version: string;
      encoding: string;
      decodes: boolean;
      isReadOnly: boolean;
    }>(
      `SELECT pg_is_in_recovery() AS "isReadOnly", current_setting('server_version_num') AS version, current_setting('server_encoding') AS encoding,
         current_setting('wal_level') = 'logical' AS decodes`,
    );
    const version = Math.trunc(Number(rows[0]?.version) / 10_000);
    if (version < oldestServer) {
      throw new UnusableDatabase(
        `DATABASE_URL names a PostgreSQL ${version}, but takes ${oldestServer} or later`,
      );
    }
    const encodingProblem = findEncodingProblem(client.database, rows[0]?.encoding);
    if (encodingProblem) throw new UnusableDatabase(`DATABASE_URL cannot be used: ${encodingProblem}`);
    if (rows[0]?.isReadOnly) throw urlError(url, readOnlyServer);
    const pooled = await isPooled(client);
    if (pooled) await checkPooler(client);
    const direct = directUrl === undefined ? server : await findDirect(client, directUrl);
    return {
      server,
      direct,
      /** Whether the connection goes through a pooler. */
      pooled,
      /** Whether the server supports logical decoding. */
      decodes: rows[0]?.decodes ?? false,
    };
  } catch (error) {
    if (error instanceof SetupError) throw error;
    throw connectionError(url, error);
  } finally {
    await close();
  }
}

/** Describes a database with another encoding than UTF-8, in which not every text of a client could be stored. */
const findEncodingProblem = (database: string | undefined, encoding: string | undefined) =>
  encoding === 'UTF8'
    ? undefined
    : `the encoding of the database ${JSON.stringify(database)} is ${encoding}, and has to be UTF8`;

/**
 * Returns the connection of DATABASE_DIRECT_URL.
 * @throws {SetupError} if it cannot be used, or leads to another database than DATABASE_URL.
 */
async function findDirect(one: pg.Client, directUrl: string): Promise<pg.ClientConfig> {
  const direct = serverOf(directUrl);
  const { client, close } = createSession(direct);
  try {
    await client.connect();
    const difference = await findDifference(one, client);
    if (difference === undefined) return direct;
    throw urlError(directUrl, `leads to ${difference}`, 'DATABASE_DIRECT_URL');
  } catch (error) {
    if (error instanceof SetupError) throw error;
    throw connectionError(directUrl, error, 'DATABASE_DIRECT_URL');
  } finally {
    await close();
  }
}

/** Describes where the other connection leads, if not to the same database of the same running server. */
async function findDifference(one: pg.Client, other: pg.Client): Promise<string | undefined> {
  const [here, there] = [await readPlace(one), await readPlace(other)];
  for (const what of ['database', 'schema'] as const)
    if (here[what] !== there[what])
      return `the ${what} ${JSON.stringify(there[what])}, and DATABASE_URL to ${JSON.stringify(here[what])}`;
  return here.server === there.server ? undefined : 'another server than DATABASE_URL, or a copy of it';
}

async function readPlace(client: pg.Client) {
  const { rows } = await client.query<Identity & { database: string; schema: string | null }>(
    `SELECT current_database() AS database, current_schema() AS schema, ${identityColumns}`,
  );
  return rows[0] ?? { database: '', schema: null, server: '' };
}

/** The codes of PostgreSQL and of poolers for a server that is away, is starting or stopping, can only be read, or has no connection left. */
const away = /^(08\w{3}|25006|57P0[1235]|53300|28\w{3}|3D000)$/;

/** The system calls in errors of Node's connections. Its other system errors are about files, or mean a fault of the program. */
const networkCalls: readonly unknown[] = ['connect', 'getaddrinfo', 'read', 'write'];

/** Whether an error means that the database is away, rather than that a statement is wrong. */
export function isAway(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.some(isAway);
  // A fatal error ends the session. A pooler that cannot connect passes on the server's, with any code.
  if (error instanceof pg.DatabaseError && (error.severity === 'FATAL' || away.test(error.code ?? '')))
    return true;
  if (error instanceof Error && 'syscall' in error) return networkCalls.includes(error.syscall);
  return /^Connection terminated|timeout exceeded when trying to connect|not queryable|not currently accepting|\bQuery read timeout\b|before secure TLS|\bcertificate\b|\bSSL connections?\b|ended by the other party/.test(
    errorText(error),
  );
}

/** @param setting the setting that has the URL. */
export const connectionError = (url: string, error: unknown, setting?: ServerSetting) =>
  urlError(url, reasonOf(error, url), setting, error);

const urlError = (
  url: string,
  says: string,
  setting: ServerSetting = 'DATABASE_URL',
  cause?: unknown,
): SetupError =>
  new UnusableDatabase(`${setting} is ${JSON.stringify(withoutPassword(url))}, but ${says}`, { cause });

export const readOnlyServer = 'it is in recovery, and can only be read';

/** Why the server of a URL cannot be used. */
function reasonOf(error: unknown, url: string): string {
  if (isUnresponsive(error)) return unresponsive;
  // The text of the error would show the host, which is a part of the password here.
  if (hasCutPassword(url) && !(error instanceof pg.DatabaseError))
    return 'cannot be used: what it has for a host looks like a part of the password';
  return `cannot be used: ${errorText(error)}`;
}
