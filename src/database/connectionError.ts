/** Explains to the operator why a server cannot be used. */

import pg from 'pg';
import { shellWord } from '../config/config.ts';
import { encodedPassword, hasCutPassword } from '../config/databaseUrl.ts';
import { type Diagnosis, errorText, SetupError, systemCodeOf, withoutPassword } from '../errors.ts';
import type { ServerSetting } from './connection/find.ts';
import { isUnresponsive, unresponsive } from './session.ts';

/** The role that may create databases for others on most servers. */
const superuser = 'postgres';

/** The codes of PostgreSQL and of poolers for a server that is away, is starting or stopping, or has no connection left. */
const away = /^(08\w{3}|57P0[1235]|53300|28\w{3}|3D000)$/;

/** The system calls in errors of Node's connections. Its other system errors are about files, or mean a fault of the program. */
const networkCalls: readonly unknown[] = ['connect', 'getaddrinfo', 'read', 'write'];

/** Whether an error means that the database is away, rather than that a statement is wrong. */
export function isAway(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.some(isAway);
  if (error instanceof pg.DatabaseError && away.test(error.code ?? '')) return true;
  if (error instanceof Error && 'syscall' in error) return networkCalls.includes(error.syscall);
  return /^Connection terminated|timeout exceeded when trying to connect|not queryable|not currently accepting|\bQuery read timeout\b|before secure TLS|ended by the other party/.test(
    errorText(error),
  );
}

type Address = Pick<pg.Client, 'host' | 'port' | 'user'>;
type Lost = Address & Pick<pg.Client, 'database'>;

/**
 * The command that creates a database for a role of the server.
 * @param options of `createdb`, besides those for the server and the roles.
 */
export function createDatabase(
  { host, port, user }: Address,
  name: string,
  options: readonly string[] = [],
): string {
  const create = (...roles: string[]) =>
    ['createdb', '-h', host, '-p', String(port), ...roles, ...options, name].map(shellWord).join(' ');
  const own = `Make it: ${create('-U', user ?? '')}`;
  return user === superuser
    ? own
    : `${own}; or, if that role may create none: ${create('-U', superuser, '-O', user ?? '')}`;
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
  const shown = JSON.stringify(withoutPassword(url));
  const { says, advice } = reasonOf(client, error, url, setting);
  return new SetupError(`${setting} is ${shown}, but ${says}. ${advice}`, { cause: error });
}

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
  const unchecked = `or write sslmode=no-verify in ${setting}, with which whoever stands between can pose as the server: see docs/configuration.md#tls.`;
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
      `Leave sslmode out of ${setting}, or switch TLS on at the server.`,
    ],
    [
      /server_login_retry/,
      `PgBouncer is there, but does not get into its server: ${said}`,
      'Start that server, or correct host= in the configuration of PgBouncer and run RELOAD.',
    ],
    [
      /^\S*(CERT_|_CERT\b|LEAF_SIGNATURE)/,
      `the certificate of the server is not trusted (${said})`,
      `Add sslrootcert=/path/of/ca.pem to ${setting}, the certificate of who has signed it; name the host as the certificate does; renew it if it is out of date; ${unchecked}`,
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
