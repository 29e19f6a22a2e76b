/** Checks URLs of PostgreSQL. */

import pg from 'pg';
import { errorText } from '../errors.ts';
import { guideFile } from '../root.ts';
import { isSimilar } from './similarNames.ts';

/** The supported values of `sslmode`: a selection of those of libpq and `pg`. */
const sslModes = ['disable', 'no-verify', 'prefer', 'require', 'verify-ca', 'verify-full'];

const tlsParameters = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey'];

const oneHost = `A URL names one host, and has no target_session_attrs: have one address lead to the primary, see ${guideFile('deployment.md#one-address-for-the-primary')}.`;

/**
 * The URL for `pg`, with `verify-full` in place of the modes that `pg` treats as `verify-full`: for these it prints a long warning
 * on standard error. With `uselibpqcompat` the modes mean what they mean to libpq, without a warning, so they stay.
 */
export function withPlainSslMode(url: string): string {
  return /[?&]uselibpqcompat=true(&|#|$)/.test(url)
    ? url
    : url.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|#|$)/g, '$1verify-full');
}

const isOfPostgres = (url: string) => /^postgres(ql)?:\/\//.test(url);

/** Whether connections are possible with a URL. */
export const isDatabaseUrl = (url: string): boolean =>
  isOfPostgres(url) && complaintAboutUrl(url) === undefined;

/** A message about what is wrong with a URL of PostgreSQL; undefined if nothing is. */
export function complaintAboutUrl(url: string): string | undefined {
  const [, authority = '', path = '', query = ''] =
    /^[a-z]+:\/\/(?:[^/?#]*@)?([^/?#]*)([^?#]*)\??([^#]*)/.exec(url) ?? [];
  // In the forms of libpq and .NET, what follows may be a password. `pg` would make it a part of a name, which messages show.
  if (/[\s;]/.test(path + query))
    return 'It has a space or a semicolon: write %20 or %3B for one in a name, and & between parameters.';
  const given = new URLSearchParams(query);
  // If there are several values, the last counts, as in `pg`.
  const lastOf = (name: string) => given.getAll(name).at(-1) || undefined;
  // `pg` knows neither several hosts nor `target_session_attrs`, and would ignore the latter.
  const places = [authority, lastOf('host'), lastOf('port')];
  if (places.some((each) => each?.includes(',')) || lastOf('target_session_attrs') !== undefined)
    return oneHost;
  // `pg` would ignore a parameter that is misspelt, and connect without TLS.
  for (const name of given.keys()) {
    const meant = tlsParameters.find((each) => isSimilar(name, each));
    if (meant !== undefined && !tlsParameters.includes(name))
      return `Unknown parameter ${name}. Did you mean ${meant}?`;
  }
  // `pg` would treat an unknown mode as `verify-full`.
  const mode = lastOf('sslmode');
  if (mode !== undefined && !sslModes.includes(mode))
    return `sslmode is ${JSON.stringify(mode)}, but takes ${sslModes.join(', ')}.`;
  // PostgreSQL ignores this parameter, so the tables would be in another schema.
  const schema = lastOf('schema');
  if (schema !== undefined && schema !== 'public')
    return `schema=${schema} has a meaning for Prisma only: write options=-c%20search_path%3D${schema} instead.`;
  if (lastOf('sslrootcert') === 'system')
    return 'sslrootcert takes a file: write sslmode=verify-full alone for the authorities that Node trusts.';
  return isOfPostgres(url) ? complaintOfDriver(url) : undefined;
}

/** Why `pg` would not make a client for a URL. It also reads the files that the URL names. */
function complaintOfDriver(url: string): string | undefined {
  try {
    new pg.Client({ connectionString: withPlainSslMode(url) });
    return undefined;
  } catch (error) {
    return `\`pg\` does not take it: ${errorText(error)}.`;
  }
}

/** The advice for a URL whose password has a character that ends the host too early. */
export const encodedPassword = `A password with characters such as @, #, / or ? is written as encodeURIComponent makes it: see ${guideFile('configuration.md#passwords-in-urls')}.`;

/** Whether a /, ? or # in the password of a URL seems to have cut off its host, since an @ follows. */
export function hasCutPassword(url: string): boolean {
  const [, authority = '', rest = ''] = /^[a-z][a-z\d+.-]*:\/\/([^/?#]*)(.*)$/is.exec(url) ?? [];
  if (!rest.startsWith('?')) return /^[^?]*@/.test(rest);
  // A query may have an @, so the place of the port has to hold something else than a number as well.
  return rest.includes('@') && /:\D/.test(authority);
}
