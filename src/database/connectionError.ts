/** Why a server cannot be used, in words for whoever has to mend it. */

import type pg from 'pg';
import { shellWord } from '../config.ts';
import { encodedPassword, errorText, hasCutPassword, SetupError, withoutPassword } from '../errors.ts';
import { isSilence, silent } from './session.ts';

/** PostgreSQL's codes for why it lets nobody in (its documentation, appendix A). */
const wrongPassword = '28P01';
const noSuchDatabase = '3D000';

/** Who may create databases for others on most servers. */
const superuser = 'postgres';

type Address = Pick<pg.Client, 'host' | 'port' | 'user'>;

/** How a database is made that a role of the server is to own. */
export function createDatabase({ host, port, user }: Address, name: string): string {
  const create = (...roles: string[]) =>
    ['createdb', '-h', host, '-p', String(port), ...roles, name].map(shellWord).join(' ');
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

/** @param client that could not connect, or lost its connection. */
export function connectionError(
  url: string,
  client: Pick<pg.Client, 'host' | 'port' | 'user' | 'database'>,
  error: unknown,
): SetupError {
  const shown = JSON.stringify(withoutPassword(url));
  const { says, advice } = reasonOf(client, error, url);
  return new SetupError(`DATABASE_URL is ${shown}, but ${says}. ${advice}`, { cause: error });
}

/**
 * Why a client cannot be used, and what to do about it.
 * @param url what the client was made of, if it was a URL.
 */
export function reasonOf(
  { host, port, user, database }: Pick<pg.Client, 'host' | 'port' | 'user' | 'database'>,
  error: unknown,
  url = '',
): { says: string; advice: string } {
  if (isSilence(error)) return silent;
  const said = errorText(error);
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
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
      advice: `Correct its name in DATABASE_URL. ${createRole({ host, port, user })}`,
    };
  if (/does not support SSL/.test(said))
    return {
      says: `the server does not offer TLS (${said})`,
      advice: 'Leave sslmode out of DATABASE_URL, or switch TLS on at the server.',
    };
  // What pg throws when a server asks for what the URL does not have.
  if (/password must be a string/.test(said))
    return {
      says: 'the server asks for a password, which it lacks',
      advice: 'Write it as postgresql://user:password@host/database.',
    };
  if (/^[\dA-Z]{5}$/.test(code) && /\d/.test(code))
    return {
      says: `the server does not let it in: ${said}`,
      advice: 'See to that, or correct DATABASE_URL.',
    };
  // What is said names the host, which a part of the password stands for here.
  if (hasCutPassword(url))
    return {
      says: 'cannot be reached: what it has for a host looks like a part of the password',
      advice: encodedPassword,
    };
  return {
    says: `cannot be reached: ${said}`,
    advice: 'Start the server, or correct DATABASE_URL; unset it for the embedded database.',
  };
}
