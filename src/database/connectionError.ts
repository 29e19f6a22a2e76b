/** Why a server cannot be used, in words for whoever has to mend it. */

import type pg from 'pg';
import { shellWord } from '../config.ts';
import { errorText, SetupError, withoutPassword } from '../errors.ts';
import { isSilence, silent } from './session.ts';

/** PostgreSQL's codes for why it lets nobody in (its documentation, appendix A). */
const wrongPassword = '28P01';
const noSuchDatabase = '3D000';

/** Who may create databases for others on most servers. */
const superuser = 'postgres';

/** @param client that could not connect, or lost its connection. */
export function connectionError(
  url: string,
  client: Pick<pg.Client, 'host' | 'port' | 'user' | 'database'>,
  error: unknown,
): SetupError {
  const shown = JSON.stringify(withoutPassword(url));
  const { says, advice } = reasonOf(client, error);
  return new SetupError(`DATABASE_URL is ${shown}, but ${says}. ${advice}`, { cause: error });
}

/** Why a client cannot be used, and what to do about it. */
export function reasonOf(
  { host, port, user, database }: Pick<pg.Client, 'host' | 'port' | 'user' | 'database'>,
  error: unknown,
): { says: string; advice: string } {
  if (isSilence(error)) return silent;
  const said = errorText(error);
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code === noSuchDatabase) {
    const create = (...roles: string[]) =>
      ['createdb', '-h', host, '-p', String(port), ...roles, database ?? ''].map(shellWord).join(' ');
    const own = create('-U', user ?? '');
    const advice =
      user === superuser
        ? `Make it: ${own}`
        : `Make it: ${own}; or, if that role may create none: ${create('-U', superuser, '-O', user ?? '')}`;
    return { says: `the server has no such database (${said})`, advice };
  }
  if (code === wrongPassword)
    return { says: `the server does not accept its password (${said})`, advice: 'Correct it.' };
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
  return {
    says: `cannot be reached: ${said}`,
    advice: 'Start the server, or correct DATABASE_URL; unset it for the embedded database.',
  };
}
