/** URLs with several hosts or with TLS, which are read as libpq reads them. */

import { describe, expect, it } from 'vitest';
import { complaintAboutUrl, hostsOf, isDatabaseUrl, withPlainSslMode } from '../../src/config/databaseUrl.ts';

describe('a URL with several hosts', () => {
  it.each([
    [
      'postgres://u:p@a:5432,b:5433/db?target_session_attrs=read-write',
      ['postgres://u:p@a:5432/db', 'postgres://u:p@b:5433/db'],
      'read-write',
    ],
    ['postgresql://a,b:5433/db', ['postgresql://a/db', 'postgresql://b:5433/db'], 'read-write'],
    [
      'postgres://u:p@[::1]:5432,[::2]/db?sslmode=disable&target_session_attrs=primary&options=-c%20a%3Db',
      [
        'postgres://u:p@[::1]:5432/db?sslmode=disable&options=-c%20a%3Db',
        'postgres://u:p@[::2]/db?sslmode=disable&options=-c%20a%3Db',
      ],
      'primary',
    ],
    [
      'postgres:///db?host=a,b&port=1,2&user=me',
      ['postgres:///db?user=me&host=a&port=1', 'postgres:///db?user=me&host=b&port=2'],
      'read-write',
    ],
    [
      'postgres:///db?host=a,b&port=6432',
      ['postgres:///db?host=a&port=6432', 'postgres:///db?host=b&port=6432'],
      'read-write',
    ],
    [
      'postgres:///db?host=%2Frun%2Fa,%2Frun%2Fb',
      ['postgres:///db?host=%2Frun%2Fa', 'postgres:///db?host=%2Frun%2Fb'],
      'read-write',
    ],
    ['postgres://a/db?target_session_attrs=any', ['postgres://a/db'], 'any'],
    ['postgres://me:a,b@h@x,y/db', ['postgres://me:a,b@h@x/db', 'postgres://me:a,b@h@y/db'], 'read-write'],
    ['postgres://a,b?user=me', ['postgres://a?user=me', 'postgres://b?user=me'], 'read-write'],
    ['postgres://a,b/db?host=&target_session_attrs=', ['postgres://a/db', 'postgres://b/db'], 'read-write'],
    ['postgres:///db?host=x&host=a,b', ['postgres:///db?host=a', 'postgres:///db?host=b'], 'read-write'],
  ])('is split into one URL for each host: %s', (url, urls, target) => {
    expect(hostsOf(url)).toEqual({ urls, target });
    expect(isDatabaseUrl(url)).toBe(true);
  });

  it.each([
    'postgresql://user:pass,word@host:5432/database',
    'postgresql:///database?host=/run/postgresql',
    'postgresql://host/a?ssl=true&sslnegotiation=direct&channel_binding=require&sslcrl=x&sslpassword=x&application_name=sslmod',
    'postgresql://host/a,b?options=-c%20search_path%3Da,b',
  ])('is not recognized in a URL with one host: %s', (url) => {
    expect(hostsOf(url)).toBeUndefined();
    expect(isDatabaseUrl(url)).toBe(true);
  });

  it.each([
    [
      'postgres://a,b/db?target_session_attrs=standby',
      'target_session_attrs is "standby", but takes any, read-write, primary.',
    ],
    [
      'postgres://a/db?target_session_attrs=prefer-standby',
      'target_session_attrs is "prefer-standby", but takes any, read-write, primary.',
    ],
    [
      'postgres://a/db?sslmode=bogus',
      'sslmode is "bogus", but takes disable, no-verify, prefer, require, verify-ca, verify-full.',
    ],
    [
      'postgres://a,b/db?sslmode=allow',
      'sslmode is "allow", but takes disable, no-verify, prefer, require, verify-ca, verify-full.',
    ],
    [
      'postgres://a/db?sslmode=require&sslrootcert=/no/file.pem',
      `sslrootcert is "/no/file.pem", but takes a file to read: ENOENT: no such file or directory, open '/no/file.pem'.`,
    ],
    [
      'postgres://a/db?sslcert=package.json&sslkey=.',
      'sslkey is ".", but takes a file to read: EISDIR: illegal operation on a directory, read.',
    ],
    [
      'postgres://a/db?sslcert=/no/file.pem',
      `sslcert is "/no/file.pem", but takes a file to read: ENOENT: no such file or directory, open '/no/file.pem'.`,
    ],
    ['postgres://a/db?sslmod=require', 'sslmod is no parameter, and has no effect: is sslmode meant?'],
    ['postgres://a/db?x=y&sslMode=require', 'sslMode is no parameter, and has no effect: is sslmode meant?'],
    [
      'postgres://a/db?ssl_root_cert=/ca.pem',
      'ssl_root_cert is no parameter, and has no effect: is sslrootcert meant?',
    ],
    [
      'postgres://a,b/db?target_session_attr=primary',
      'target_session_attr is no parameter, and has no effect: is target_session_attrs meant?',
    ],
    ['postgres:///db?host=a,b,c&port=1,2', 'It has 3 hosts, but 2 ports.'],
    ['postgres://a:1,b:x/db', undefined],
    ['mysql://a,b/db', undefined],
    ['mysql://a/db', undefined],
    [' postgres://a,b/db', undefined],
    ['xpostgres://a,b/db', undefined],
    ['localhost', undefined],
  ])('is rejected with the valid values or the reason: %s', (url, complaint) => {
    expect(isDatabaseUrl(url)).toBe(false);
    expect(complaintAboutUrl(url)).toBe(complaint);
  });
});

describe('a URL with TLS', () => {
  it.each(['disable', 'no-verify', 'prefer', 'require', 'verify-ca', 'verify-full'])(
    'is accepted with sslmode=%s',
    (mode) => {
      expect(isDatabaseUrl(`postgres://a/db?sslmode=${mode}`)).toBe(true);
    },
  );

  it.each([
    ['postgres://a/db?x=y&sslmode=require&z=1', 'postgres://a/db?x=y&sslmode=verify-full&z=1'],
    ['postgres://a/db?sslmode=prefer', 'postgres://a/db?sslmode=verify-full'],
    ['postgres://a,b/db?sslmode=verify-ca#x', 'postgres://a,b/db?sslmode=verify-full#x'],
    ['postgres://a/db?sslmode=no-verify', 'postgres://a/db?sslmode=no-verify'],
    [
      'postgres://a/db?uselibpqcompat=true&sslmode=require',
      'postgres://a/db?uselibpqcompat=true&sslmode=require',
    ],
    [
      'postgres://a/db?sslmode=require&uselibpqcompat=true',
      'postgres://a/db?sslmode=require&uselibpqcompat=true',
    ],
    [
      'postgres://a/db?sslmode=require&uselibpqcompat=true#x',
      'postgres://a/db?sslmode=require&uselibpqcompat=true#x',
    ],
    [
      'postgres://a/db?sslmode=prefer&sslmode=require',
      'postgres://a/db?sslmode=verify-full&sslmode=verify-full',
    ],
    ['postgres://a/require', 'postgres://a/require'],
  ])('is passed to pg with the sslmode that has the same meaning there: %s', (url, given) => {
    expect(withPlainSslMode(url)).toBe(given);
  });
});
