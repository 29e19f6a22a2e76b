/**
 * URLs of PostgreSQL that name several hosts, as libpq takes them: `postgresql://a:5432,b:5433/app` or
 * `postgresql:///app?host=a,b&port=5432,5433`. `pg` knows one host each.
 */

import { readFileSync } from 'node:fs';
import { errorText } from './errors.ts';

/** What `target_session_attrs` may ask of the host that is used, of what libpq knows. */
export const targets = ['any', 'read-write', 'primary'] as const;
export type Target = (typeof targets)[number];

/** What `sslmode` may ask of the connection, of what libpq and `pg` know. */
const sslModes = ['disable', 'no-verify', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;

export interface DatabaseHosts {
  /** A URL for each host, which is all that it differs in. */
  readonly urls: readonly string[];
  readonly target: Target;
}

/** What of the query is about hosts. */
const aboutHosts = ['host', 'port', 'target_session_attrs'] as const;

/**
 * The hosts of a URL that names several, or says what the one has to be; undefined of any other.
 * @throws an error that says what is wrong with them.
 */
export function hostsOf(url: string): DatabaseHosts | undefined {
  const { scheme, user, authority, path, query } = partsOf(url);
  const [host, port, given] = aboutHosts.map((name) => valueIn(query, name));
  const places = host === undefined ? authority.split(',') : host.split(',');
  if (places.length === 1 && given === undefined) return undefined;
  const target = targets.find((each) => each === (given ?? 'read-write'));
  if (target === undefined)
    throw new Error(`target_session_attrs is ${JSON.stringify(given)}, but takes ${targets.join(', ')}.`);
  const ports = port?.split(',') ?? [];
  if (ports.length > 1 && ports.length !== places.length)
    throw new Error(`It has ${places.length} hosts, but ${ports.length} ports.`);
  const rest = query.filter((part) => !aboutHosts.some((name) => isCalled(part, name)));
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
 * The URL as `pg` has to be given it: of modes that it takes for `verify-full` it warns on standard error, at length. Beside
 * `uselibpqcompat` they are what they are to libpq, and it is silent.
 */
export function withPlainSslMode(url: string): string {
  return /[?&]uselibpqcompat=true(&|#|$)/.test(url)
    ? url
    : url.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|#|$)/g, '$1verify-full');
}

/** Whether a URL is one that connections can be made of, to each of its hosts. */
export function isDatabaseUrl(url: string): boolean {
  try {
    checkTls(url);
    const urls = hostsOf(url)?.urls ?? [url];
    return urls.every((each) => /^postgres(ql)?:\/\//.test(each) && URL.canParse(each));
  } catch {
    return false;
  }
}

/** What is wrong with the hosts of a URL, or with what it asks of them, if anything is. */
export function complaintAboutUrl(url: string): string | undefined {
  try {
    checkTls(url);
    hostsOf(url);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : undefined;
  }
}

/**
 * `pg` takes a mode that it does not know for `verify-full`, and reads the files in the constructor of each client.
 * @throws an error that says what is wrong with them.
 */
function checkTls(url: string): void {
  const { query } = partsOf(url);
  const mode = valueIn(query, 'sslmode');
  if (mode !== undefined && !sslModes.some((each) => each === mode))
    throw new Error(`sslmode is ${JSON.stringify(mode)}, but takes ${sslModes.join(', ')}.`);
  for (const name of ['sslrootcert', 'sslcert', 'sslkey']) {
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
    /^([a-z]+:\/\/)((?:[^/?#]*@)?)([^/?#]*)([^?#]*)\??([^#]*)/i.exec(url) ?? [];
  return { scheme, user, authority, path, query: query === '' ? [] : query.split('&') };
}

const isCalled = (part: string, name: string) => part.split('=', 1)[0] === name;

/** As `pg` reads it: of several, the last. */
function valueIn(query: readonly string[], name: string): string | undefined {
  const value = new URLSearchParams(query.filter((part) => isCalled(part, name)).join('&'));
  return value.getAll(name).at(-1) || undefined;
}
