/** Why a server cannot be used, in words for whoever has to mend it. */

import type pg from 'pg';
import { shellWord } from '../config/config.ts';
import { encodedPassword, hasCutPassword } from '../config/databaseUrl.ts';
import { type Diagnosis, errorText, SetupError, systemCodeOf, withoutPassword } from '../errors.ts';
import type { ServerSetting } from './connection/client.ts';
import { isUnresponsive, unresponsive } from './session.ts';

/** PostgreSQL's codes for why it lets nobody in (its documentation, appendix A). */
const wrongPassword = '28P01';
const noSuchDatabase = '3D000';

/** OpenSSL's codes for a certificate that nobody who is trusted has signed. */
const untrusted = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

/** Who may create databases for others on most servers. */
const superuser = 'postgres';

/** The codes of Node, of PostgreSQL and of poolers for a server that is away, starts, stops or has no connection left. */
const away = /^(E[A-Z_]+|08\w{3}|57P0[1235]|53300|28\w{3}|3D000)$/;

/** Whether an error says that the database is away, and not that a statement is wrong. */
export function isAway(error: unknown): boolean {
  const text = errorText(error);
  return (
    away.test(systemCodeOf(error) ?? '') ||
    isUnresponsive(error) ||
    /^Connection terminated|timeout exceeded when trying to connect|not queryable|not currently accepting/.test(
      text,
    )
  );
}

type Address = Pick<pg.Client, 'host' | 'port' | 'user'>;

/**
 * How a database is made that a role of the server is to own.
 * @param options of `createdb`, beside those that name the server and the roles.
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

/** How a role is made that has a password. */
function createRole({ host, port, user }: Address): string {
  const command = ['createuser', '-h', host, '-p', String(port), '-U', superuser, '-P', user ?? ''];
  return `If there is no such role, make it: ${command.map(shellWord).join(' ')}`;
}

/**
 * @param client that could not connect, or lost its connection.
 * @param setting what the URL was given by.
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

type Lost = Pick<pg.Client, 'host' | 'port' | 'user' | 'database'>;

/** Why a client cannot be used, and what to do about it. */
export function reasonOf(
  { host, port, user, database }: Lost,
  error: unknown,
  url = '',
  setting: ServerSetting = 'DATABASE_URL',
): Diagnosis {
  if (isUnresponsive(error)) return unresponsive;
  const said = errorText(error);
  const code = systemCodeOf(error) ?? '';
  if (code === noSuchDatabase)
    return {
      says: `the server has no such database (${said})`,
      advice: createDatabase({ host, port, user }, database ?? ''),
    };
  // A server that asks for passwords says the same of a role that there is not.
  if (code === wrongPassword)
    return {
      says: `the server does not accept its password (${said})`,
      advice: `Correct it, or the name of the role. ${createRole({ host, port, user })}`,
    };
  if (/^role ".*" does not exist$/.test(said))
    return {
      says: `the server has no such role (${said})`,
      advice: `Correct its name in ${setting}. ${createRole({ host, port, user })}`,
    };
  if (/does not support SSL/.test(said))
    return {
      says: `the server does not offer TLS (${said})`,
      advice: `Leave sslmode out of ${setting}, or switch TLS on at the server.`,
    };
  if (/server_login_retry/.test(said))
    return {
      says: `PgBouncer is there, but does not get into its server: ${said}`,
      advice: 'Start that server, or correct host= in the configuration of PgBouncer and run RELOAD.',
    };
  const ofCertificate = reasonOfCertificate(code, said, setting);
  if (ofCertificate) return ofCertificate;
  // What pg throws when a server asks for what the URL does not have.
  if (/password must be a string/.test(said))
    return {
      says: 'the server asks for a password, which it lacks',
      advice: 'Write it as postgresql://user:password@host/database.',
    };
  if (/^[\dA-Z]{5}$/.test(code) && /\d/.test(code))
    return {
      says: `the server does not let it in: ${said}`,
      advice: `See to that, or correct ${setting}.`,
    };
  // What is said names the host, which a part of the password stands for here.
  if (hasCutPassword(url))
    return {
      says: 'cannot be reached: what it has for a host looks like a part of the password',
      advice: encodedPassword,
    };
  const without = setting === 'DATABASE_URL' ? '; unset it for the embedded database' : '';
  return { says: `cannot be reached: ${said}`, advice: `Start the server, or correct ${setting}${without}.` };
}

/** Why the certificate of a server is not accepted, if that is what is wrong. */
function reasonOfCertificate(code: string, said: string, setting: ServerSetting): Diagnosis | undefined {
  const unchecked = `or write sslmode=no-verify in ${setting}, with which whoever stands between can pose as the server: see docs/configuration.md#tls.`;
  if (untrusted.has(code))
    return {
      says: `the certificate of the server is not trusted (${said})`,
      advice: `Add sslrootcert=/path/of/ca.pem to ${setting}, the certificate of who has signed it; ${unchecked}`,
    };
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return {
      says: `the certificate of the server is for another host (${said})`,
      advice: `Name the host in ${setting} as the certificate does; ${unchecked}`,
    };
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID')
    return {
      says: `the certificate of the server is not valid now (${said})`,
      advice: `Renew it, or set the clocks; ${unchecked}`,
    };
  return undefined;
}
