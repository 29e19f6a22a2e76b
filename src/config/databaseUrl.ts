/** Checks URLs of PostgreSQL. */

import { readFileSync } from 'node:fs';
import { errorText } from '../errors.ts';
import { isSimilar } from './similarNames.ts';

/** The supported values of `sslmode`: a selection of those of libpq and `pg`. */
const sslModes = ['disable', 'no-verify', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;

/**
 * The URL for `pg`, with `verify-full` in place of the modes that `pg` treats as `verify-full`: for these it prints a long warning
 * on standard error. With `uselibpqcompat` the modes mean what they mean to libpq, without a warning, so they stay.
 */
export function withPlainSslMode(url: string): string {
  return /[?&]uselibpqcompat=true(&|#|$)/.test(url)
    ? url
    : url.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|#|$)/g, '$1verify-full');
}

/** Whether connections are possible with a URL. */
export const isDatabaseUrl = (url: string): boolean =>
  complaintAboutUrl(url) === undefined && /^postgres(ql)?:\/\//.test(url) && URL.canParse(url);

/** A message about what is wrong with the host or the parameters of a URL; undefined if nothing is. */
export function complaintAboutUrl(url: string): string | undefined {
  try {
    checkHost(url);
    checkNames(url);
    checkTls(url);
    checkSchema(url);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : undefined;
  }
}

/**
 * Checks that the URL names one host. `pg` knows neither several hosts nor `target_session_attrs`, and would ignore the latter.
 * @throws an error that says what to do instead.
 */
function checkHost(url: string): void {
  const { authority, query } = partsOf(url);
  const hosts = [authority, valueIn(query, 'host'), valueIn(query, 'port')];
  if (hosts.some((each) => each?.includes(',')) || valueIn(query, 'target_session_attrs') !== undefined)
    throw new Error(oneHost);
}

const oneHost =
  'A URL names one host, and has no target_session_attrs: have one address lead to the primary, see docs/deployment.md#one-address-for-the-primary.';

/**
 * Checks that none of the parameters for TLS is misspelt: `pg` would ignore it, and connect without.
 * @throws an error that says which one is.
 */
function checkNames(url: string): void {
  const known = ['sslmode', ...tlsFiles];
  for (const given of partsOf(url).query.map(nameOf)) {
    const meant = known.find((name) => isSimilar(given, name));
    if (meant !== undefined && !known.includes(given))
      throw new Error(`${given} is no parameter, and has no effect: is ${meant} meant?`);
  }
}

const tlsFiles = ['sslrootcert', 'sslcert', 'sslkey'];

/**
 * Checks the TLS parameters. `pg` would treat an unknown mode as `verify-full`, and read the files in the constructor of each client.
 * @throws an error that says what is wrong with a parameter.
 */
function checkTls(url: string): void {
  const { query } = partsOf(url);
  const mode = valueIn(query, 'sslmode');
  if (mode !== undefined && !sslModes.some((each) => each === mode))
    throw new Error(`sslmode is ${JSON.stringify(mode)}, but takes ${sslModes.join(', ')}.`);
  for (const name of tlsFiles) {
    const file = valueIn(query, name);
    try {
      if (file !== undefined) readFileSync(file);
    } catch (error) {
      throw new Error(`${name} is ${JSON.stringify(file)}, but takes a file to read: ${errorText(error)}.`);
    }
  }
}

/** Checks that the URL does not name a schema as Prisma does: PostgreSQL does not know it, and the tables would be made in another schema. */
function checkSchema(url: string): void {
  const schema = valueIn(partsOf(url).query, 'schema');
  if (schema !== undefined && schema !== 'public')
    throw new Error(
      `schema=${schema} has a meaning for Prisma only: write options=-c%20search_path%3D${schema} instead.`,
    );
}

function partsOf(url: string) {
  const [, authority = '', query = ''] = /^[a-z]+:\/\/(?:[^/?#]*@)?([^/?#]*)[^?#]*\??([^#]*)/.exec(url) ?? [];
  return { authority, query: query === '' ? [] : query.split('&') };
}

const nameOf = (part: string): string => part.split('=', 1)[0] ?? '';

const hasName = (part: string, name: string) => nameOf(part) === name;

/** The value of a parameter; of several the last, as `pg` reads them. */
function valueIn(query: readonly string[], name: string): string | undefined {
  const value = new URLSearchParams(query.filter((part) => hasName(part, name)).join('&'));
  return value.getAll(name).at(-1) || undefined;
}

/** The advice for a URL that a character of its password has cut short. */
export const encodedPassword =
  'A password with characters such as @, #, / or ? is written as encodeURIComponent makes it: see docs/configuration.md#passwords-in-urls.';

/** Whether a /, ? or # in the password of a URL seems to have cut off its host, since an @ follows. */
export function hasCutPassword(url: string): boolean {
  const [, authority = '', rest = ''] = /^[a-z][a-z\d+.-]*:\/\/([^/?#]*)(.*)$/is.exec(url) ?? [];
  if (!rest.startsWith('?')) return /^[^?]*@/.test(rest);
  // A query may have an @, so the place of the port has to hold something else than a number as well.
  return rest.includes('@') && /:\D/.test(authority);
}
