/** URLs of databases: what they may have, and how they are passed on. */

import { describe, expect, it } from 'vitest';
import { complaintAboutUrl, isDatabaseUrl, withPlainSslMode } from '../../src/config/databaseUrl.ts';

const oneHost =
  'A URL names one host, and has no target_session_attrs: have one address lead to the primary, see docs/deployment.md#one-address-for-the-primary.';

describe('a URL', () => {
  it.each([
    'postgresql://user:pass,word@host:5432/database',
    'postgresql:///database?host=/run/postgresql',
    'postgresql://user:pass@/database?host=/cloudsql/project:region:instance',
    'postgresql://user:pass@%2Frun%2Fpostgresql/database',
    'postgresql://host/a?ssl=true&sslnegotiation=direct&channel_binding=require&sslcrl=x&sslpassword=x&application_name=sslmod',
    'postgresql://host/a,b?options=-c%20search_path%3Da,b',
    'postgresql://host/a?schema=public&host=',
  ])('is accepted: %s', (url) => {
    expect(isDatabaseUrl(url)).toBe(true);
  });

  it.each([
    ['postgres://u:p@a:5432,b:5433/db', oneHost],
    ['postgres:///db?host=a,b&port=1', oneHost],
    ['postgres:///db?host=a&port=1,2', oneHost],
    ['postgres://a/db?target_session_attrs=primary', oneHost],
    [
      'postgres://a/db?schema=app',
      'schema=app has a meaning for Prisma only: write options=-c%20search_path%3Dapp instead.',
    ],
    [
      'postgres://a/db?sslmode=require&sslmode=bogus',
      'sslmode is "bogus", but takes disable, no-verify, prefer, require, verify-ca, verify-full.',
    ],
    [
      'postgres://a/db?sslmode=require&sslrootcert=/no/file.pem',
      "`pg` does not take it: ENOENT: no such file or directory, open '/no/file.pem'.",
    ],
    [
      'postgres://a/db?sslrootcert=system',
      'sslrootcert takes a file: write sslmode=verify-full alone for the authorities that Node trusts.',
    ],
    [
      'postgres://a/db;Password=x',
      'It has a space or a semicolon: write %20 or %3B for one in a name, and & between parameters.',
    ],
    ['postgres://u:%ff@a/db', '`pg` does not take it: URI malformed.'],
    [
      'postgres://a/db?sslnegotiation=direct&sslmode=disable',
      '`pg` does not take it: sslnegotiation=direct requires SSL to be enabled.',
    ],
    ['postgres://a/db?ssl_key=x', 'Unknown parameter ssl_key. Did you mean sslkey?'],
    ['postgres://a/db?x=y&sslMode=require', 'Unknown parameter sslMode. Did you mean sslmode?'],
    ['postgres://a:x/db', '`pg` does not take it: Invalid URL.'],
    ['mysql://a/db', undefined],
    ['xpostgres://a/db', undefined],
    ['localhost', undefined],
  ])('is rejected with the valid values or the reason: %s', (url, complaint) => {
    expect(isDatabaseUrl(url)).toBe(false);
    expect(complaintAboutUrl(url)).toBe(complaint);
  });
});

describe('a URL with TLS', () => {
  it('is accepted with each mode', () => {
    for (const mode of ['disable', 'no-verify', 'prefer', 'require', 'verify-ca', 'verify-full'])
      expect(isDatabaseUrl(`postgres://a/db?sslmode=${mode}`), mode).toBe(true);
  });

  it.each([
    ['postgres://a/db?x=y&sslmode=require&z=1', 'postgres://a/db?x=y&sslmode=verify-full&z=1'],
    ['postgres://a/db?sslmode=prefer', 'postgres://a/db?sslmode=verify-full'],
    ['postgres://a/db?sslmode=verify-ca#x', 'postgres://a/db?sslmode=verify-full#x'],
    ['postgres://a/db?sslmode=no-verify', 'postgres://a/db?sslmode=no-verify'],
    [
      'postgres://a/db?sslmode=require&uselibpqcompat=true#x',
      'postgres://a/db?sslmode=require&uselibpqcompat=true#x',
    ],
    ['postgres://a/require', 'postgres://a/require'],
  ])('is passed to pg with the sslmode that has the same meaning there: %s', (url, given) => {
    expect(withPlainSslMode(url)).toBe(given);
  });
});
