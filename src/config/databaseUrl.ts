/**
 * Checks URLs of PostgreSQL, and takes apart those with several hosts in the form of libpq: `postgresql://a:5432,b:5433/app` or
 * `postgresql:///app?host=a,b&port=5432,5433`. `pg` takes one host in a URL.
 */

import { readFileSync } from 'node:fs';
import { errorText } from '../errors.ts';
import { isSimilar } from './similarNames.ts';

/** The supported values of `target_session_attrs`: a selection of libpq's. */
export const targets = ['any', 'read-write', 'primary'] as const;
export type Target = (typeof targets)[number];

/** The supported values of `sslmode`: a selection of those of libpq and `pg`. */
const sslModes = ['disable', 'no-verify', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;

export interface DatabaseHosts {
  /** One URL for each host; they are the same apart from the host and its port. */
  readonly urls: readonly string[];
  readonly target: Target;
}

/** The query parameters about hosts. */
const hostParameters = ['host', 'port', 'target_session_attrs'] as const;

/**
 * The hosts of a URL with several hosts, or with `target_session_attrs`; undefined for any other URL.
 * @throws an error that says what is wrong with the hosts.
 */
export function hostsOf(url: string): DatabaseHosts | undefined {
  const { scheme, user, authority, path, query } = partsOf(url);
  const [host, port, given] = hostParameters.map((name) => valueIn(query, name));
  const places = host === undefined ? authority.split(',') : host.split(',');
  if (places.length === 1 && given === undefined) return undefined;
  const target = targets.find((each) => each === (given ?? 'read-write'));
  if (target === undefined)
    throw new Error(`target_session_attrs is ${JSON.stringify(given)}, but takes ${targets.join(', ')}.`);
  const ports = port?.split(',') ?? [];
  if (ports.length > 1 && ports.length !== places.length)
    throw new Error(`It has ${places.length} hosts, but ${ports.length} ports.`);
  const rest = query.filter((part) => !hostParameters.some((name) => hasName(part, name)));
  const urls = places.map((place, index) => {
    const own = [...rest];
    if (host !== undefined) own.push(`host=${encodeURIComponent(place)}`);
    const itsPort = ports[index] ?? ports[0];
    if (itsPort) own.push(`port=${encodeURIComponent(itsPort)}`);
    const before = host === undefined ? place : '';
    return `${scheme}${user}${before}${path}${own.length > 0 ? `?${own.join('&')}` : ''}`;
  });
  return { urls, target };
}

/**
 * The URL for `pg`, with `verify-full` in place of the modes that `pg` treats as `verify-full`: for these it prints a long warning
 * on standard error. With `uselibpqcompat` the modes mean what they mean to libpq, without a warning, so they stay.
 */
export function withPlainSslMode(url: string): string {
  return /[?&]uselibpqcompat=true(&|#|$)/.test(url)
    ? url
    : url.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|#|$)/g, '$1verify-full');
}

/** Whether connections to each host of a URL are possible with it. */
export function isDatabaseUrl(url: string): boolean {
  try {
    const urls = checkedHosts(url)?.urls ?? [url];
    return urls.every((each) => /^postgres(ql)?:\/\//.test(each) && URL.canParse(each));
  } catch {
    return false;
  }
}

/** A message about wrong or misspelt parameters of a URL, or wrong hosts; undefined if they are right. */
export function complaintAboutUrl(url: string): string | undefined {
  try {
    checkedHosts(url);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : undefined;
  }
}

/** The hosts of a URL. @throws an error that says what is wrong with them or with another parameter. */
function checkedHosts(url: string): ReturnType<typeof hostsOf> {
  checkNames(url);
  checkTls(url);
  return hostsOf(url);
}

/**
 * Checks that none of the parameters for TLS and failover is misspelt: `pg` would ignore it, and connect without.
 * @throws an error that says which one is.
 */
function checkNames(url: string): void {
  const known = ['sslmode', ...tlsFiles, 'target_session_attrs'];
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

function partsOf(url: string) {
  const [, scheme = '', user = '', authority = '', path = '', query = ''] =
    /^([a-z]+:\/\/)((?:[^/?#]*@)?)([^/?#]*)([^?#]*)\??([^#]*)/.exec(url) ?? [];
  return { scheme, user, authority, path, query: query === '' ? [] : query.split('&') };
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
