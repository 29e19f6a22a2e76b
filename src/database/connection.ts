/** Checks that a server can be used, finds its capabilities, and explains to the operator why it cannot be used. */

import { randomBytes } from 'node:crypto';
import { isIPv6 } from 'node:net';
import pg from 'pg';
import { shellWord } from '../config/config.ts';
import { encodedPassword, hasCutPassword, withPlainSslMode } from '../config/databaseUrl.ts';
import { type Diagnosis, errorText, SetupError, systemCodeOf, withoutPassword } from '../errors.ts';
import { guideFile } from '../root.ts';
import {
  checkPooler,
  createSession,
  isPooled,
  isUnresponsive,
  NoConnection,
  unresponsive,
} from './session.ts';

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
export const oldestServer = 15;

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
      throw new SetupError(`DATABASE_URL names a PostgreSQL ${version}, but takes ${oldestServer} or later.`);
    }
    const wrong = findEncodingProblem(client, rows[0]?.encoding);
    if (wrong) throw new SetupError(`DATABASE_URL cannot be used: ${wrong.says}. ${wrong.advice}`);
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
async function findDirect(one: pg.Client, directUrl: string): Promise<pg.ClientConfig> {
  const direct = serverOf(directUrl);
  const { client, close } = createSession(direct);
  try {
    await client.connect();
    const difference = await findDifference(one, client);
    if (difference === undefined) return direct;
    const shown = JSON.stringify(withoutPassword(directUrl));
    throw new SetupError(
      `DATABASE_DIRECT_URL is ${shown}, but leads to ${difference}. Name the same database as DATABASE_URL, past its pooler.`,
    );
  } catch (error) {
    if (error instanceof SetupError) throw error;
    throw connectionError(directUrl, client, error, 'DATABASE_DIRECT_URL');
  } finally {
    await close();
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
      return 'another server than DATABASE_URL, or a copy of it';
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

/** The codes of PostgreSQL and of poolers for a server that is away, is starting or stopping, can only be read, or has no connection left. */
const away = /^(08\w{3}|25006|57P0[1235]|53300|28\w{3}|3D000)$/;

/** The system calls in errors of Node's connections. Its other system errors are about files, or mean a fault of the program. */
const networkCalls: readonly unknown[] = ['connect', 'getaddrinfo', 'read', 'write'];

/** Whether an error means that the database is away, rather than that a statement is wrong. */
export function isAway(error: unknown): boolean {
  if (error instanceof NoConnection) return true;
  if (error instanceof AggregateError) return error.errors.some(isAway);
  // A fatal error ends the session. A pooler that cannot connect passes on the server's, with any code.
  if (error instanceof pg.DatabaseError && (error.severity === 'FATAL' || away.test(error.code ?? '')))
    return true;
  if (error instanceof Error && 'syscall' in error) return networkCalls.includes(error.syscall);
  return /^Connection terminated|timeout exceeded when trying to connect|not queryable|not currently accepting|\bQuery read timeout\b|before secure TLS|ended by the other party/.test(
    errorText(error),
  );
}

type Address = Pick<pg.Client, 'host' | 'port' | 'user'>;
type Lost = Address & Pick<pg.Client, 'database'>;

/**
 * The command that creates a database as the role of a client.
 * @param options of `createdb`, besides those for the server and the role.
 */
export function createDatabase(
  { host, port, user }: Address,
  name: string,
  options: readonly string[] = [],
): string {
  const command = ['createdb', '-h', host, '-p', String(port), '-U', user ?? '', ...options, name];
  return `Make it: ${command.map(shellWord).join(' ')}`;
}

/**
 * @param client the client that could not connect, or lost its connection.
 * @param setting the setting that has the URL.
 */
export function connectionError(
  url: string,
  client: Lost,
  error: unknown,
  setting: ServerSetting = 'DATABASE_URL',
): SetupError {
  return urlError(url, reasonOf(client, error, url, setting), setting, error);
}

const urlError = (
  url: string,
  { says, advice }: Diagnosis,
  setting: ServerSetting = 'DATABASE_URL',
  cause?: unknown,
) =>
  new SetupError(`${setting} is ${JSON.stringify(withoutPassword(url))}, but ${says}. ${advice}`, { cause });

export const readOnlyServer: Diagnosis = {
  says: 'it is in recovery, and can only be read',
  advice: 'Name the primary in DATABASE_URL.',
};

/** Why a client cannot be used, and what to do about it. */
export function reasonOf(
  client: Lost,
  error: unknown,
  url = '',
  setting: ServerSetting = 'DATABASE_URL',
): Diagnosis {
  if (isUnresponsive(error)) return unresponsive;
  const said = errorText(error);
  const code = systemCodeOf(error) ?? '';
  const found = reasonsFor(client, said, setting).find(([pattern]) => pattern.test(`${code} ${said}`));
  if (found) return { says: found[1], advice: found[2] };
  // The text of the error would show the host, which is a part of the password here.
  if (hasCutPassword(url))
    return {
      says: 'cannot be reached: what it has for a host looks like a part of the password',
      advice: encodedPassword,
    };
  const without = setting === 'DATABASE_URL' ? '; unset it for the embedded database' : '';
  return { says: `cannot be reached: ${said}`, advice: `Start the server, or correct ${setting}${without}.` };
}

/**
 * The known reasons: each with a pattern for the code and text of the error, and the two texts of the diagnosis. Codes are those
 * of PostgreSQL (its documentation, appendix A) and of OpenSSL.
 */
function reasonsFor(
  client: Lost,
  said: string,
  setting: ServerSetting,
): readonly [pattern: RegExp, says: string, advice: string][] {
  const unchecked = `or write sslmode=no-verify in ${setting}, with which whoever stands between can pose as the server: see ${guideFile('configuration.md#tls')}.`;
  const byVariable = process.env.PGSSLMODE
    ? ' PGSSLMODE is set, and asks for TLS where a URL has no sslmode.'
    : '';
  return [
    [/^3D000 /, `the server has no such database (${said})`, createDatabase(client, client.database ?? '')],
    // A server that asks for passwords responds the same for a role that does not exist.
    [
      /^28P01 /,
      `the server does not accept its password (${said})`,
      'Correct it, or the name of the role, or make the role by createuser -P.',
    ],
    [
      /^\S* role ".*" does not exist$/,
      `the server has no such role (${said})`,
      `Correct its name in ${setting}, or make it by createuser -P.`,
    ],
    [
      /does not support SSL/,
      `the server does not offer TLS (${said})`,
      `Leave sslmode out of ${setting}, or switch TLS on at the server.${byVariable}`,
    ],
    [
      /^\S*(CERT_|_CERT\b|LEAF_SIGNATURE)/,
      `the certificate of the server is not trusted (${said})`,
      `Add sslrootcert=/path/of/ca.pem to ${setting}, the certificate of who has signed it; name the host as the certificate does; renew it if it is out of date; ${unchecked}${byVariable}`,
    ],
    // `pg` throws this if the server asks for a password that the URL does not have.
    [
      /password must be a string/,
      'the server asks for a password, which it lacks',
      'Write it as postgresql://user:password@host/database.',
    ],
    [
      /^(?=\S*\d)[\dA-Z]{5} /,
      `the server does not let it in: ${said}`,
      `See to that, or correct ${setting}.`,
    ],
  ];
}
