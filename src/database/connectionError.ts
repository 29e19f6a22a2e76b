/** Why a server cannot be used, in words for whoever has to mend it. */

import type pg from 'pg';
import { shellWord } from '../config.ts';
import { errorText, SetupError, withoutPassword } from '../errors.ts';
import { isSilence, silence } from './session.ts';

/** PostgreSQL's codes for why it lets nobody in (its documentation, appendix A). */
const wrongPassword = '28P01';
const noSuchDatabase = '3D000';

/** @param client that could not connect, or lost its connection. */
export function connectionError(
  url: string,
  client: Pick<pg.Client, 'host' | 'port' | 'user' | 'database'>,
  error: unknown,
): SetupError {
  const shown = JSON.stringify(withoutPassword(url));
  return new SetupError(`DATABASE_URL is ${shown}, but ${reasonOf(client, error)}`, { cause: error });
}

function reasonOf(
  { host, port, user, database }: Pick<pg.Client, 'host' | 'port' | 'user' | 'database'>,
  error: unknown,
): string {
  if (isSilence(error)) return silence;
  const said = errorText(error);
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code === noSuchDatabase) {
    const words = ['createdb', '-h', host, '-p', String(port), '-U', user ?? '', database ?? ''];
    return `the server has no such database (${said}). Make it: ${words.map(shellWord).join(' ')}`;
  }
  if (code === wrongPassword) return `the server does not accept its password (${said}). Correct it.`;
  // What pg throws when a server asks for what the URL does not have.
  if (/password must be a string/.test(said))
    return `the server asks for a password, which it lacks. Write it as postgresql://user:password@host/database.`;
  if (/^[\dA-Z]{5}$/.test(code) && /\d/.test(code)) return `the server does not let it in: ${said}`;
  return `cannot be reached: ${said}. Start the server, or correct DATABASE_URL; unset it for the embedded database.`;
}
