/** The messages about a server that cannot be used. Errors of real servers are tested in `serve.test.ts`. */

import { describe, expect, it } from 'vitest';
import { connectionError, reasonOf } from '../../src/database/connectionError.ts';

const url = 'postgresql://me:hunter2@h:5433/a%20b';
const client = { host: 'h', port: 5433, user: 'me', database: 'a b' };
const failed = (message: string, code?: string) => Object.assign(new Error(message), { code });

const unchecked =
  'or write sslmode=no-verify in DATABASE_URL, with which whoever stands between can pose as the server: see docs/configuration.md#tls.';

describe('the message about a server that cannot be used', () => {
  it.each([
    [
      failed('connect ECONNREFUSED 127.0.0.1:5433', 'ECONNREFUSED'),
      'cannot be reached: connect ECONNREFUSED 127.0.0.1:5433. Start the server, or correct DATABASE_URL; unset it for the embedded database.',
    ],
    [
      failed('getaddrinfo ENOTFOUND h', 'ENOTFOUND'),
      'cannot be reached: getaddrinfo ENOTFOUND h. Start the server, or correct DATABASE_URL; unset it for the embedded database.',
    ],
    [
      new AggregateError([failed('refused at ::1'), failed('refused at 127.0.0.1')]),
      'cannot be reached: refused at ::1; refused at 127.0.0.1. Start the server, or correct DATABASE_URL; unset it for the embedded database.',
    ],
    [
      failed('password authentication failed for user "me"', '28P01'),
      'the server does not accept its password (password authentication failed for user "me"). Correct it, or the name of the role. If there is no such role, make it: createuser -h h -p 5433 -U postgres -P me',
    ],
    [
      failed('role "me" does not exist', '28000'),
      'the server has no such role (role "me" does not exist). Correct its name in DATABASE_URL. If there is no such role, make it: createuser -h h -p 5433 -U postgres -P me',
    ],
    [
      failed('The server does not support SSL connections'),
      'the server does not offer TLS (The server does not support SSL connections). Leave sslmode out of DATABASE_URL, or switch TLS on at the server.',
    ],
    [
      failed('self-signed certificate', 'DEPTH_ZERO_SELF_SIGNED_CERT'),
      `the certificate of the server is not trusted (self-signed certificate). Add sslrootcert=/path/of/ca.pem to DATABASE_URL, the certificate of who has signed it; ${unchecked}`,
    ],
    [
      failed('unable to verify the first certificate', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'),
      `the certificate of the server is not trusted (unable to verify the first certificate). Add sslrootcert=/path/of/ca.pem to DATABASE_URL, the certificate of who has signed it; ${unchecked}`,
    ],
    [
      failed("Hostname/IP does not match certificate's altnames", 'ERR_TLS_CERT_ALTNAME_INVALID'),
      `the certificate of the server is for another host (Hostname/IP does not match certificate's altnames). Name the host in DATABASE_URL as the certificate does; ${unchecked}`,
    ],
    [
      failed('certificate has expired', 'CERT_HAS_EXPIRED'),
      `the certificate of the server is not valid now (certificate has expired). Renew it, or set the clocks; ${unchecked}`,
    ],
    [
      failed('SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string'),
      'the server asks for a password, which it lacks. Write it as postgresql://user:password@host/database.',
    ],
    [
      failed('database "a b" does not exist', '3D000'),
      `the server has no such database (database "a b" does not exist). Make it: createdb -h h -p 5433 -U me 'a b'; or, if that role may create none: createdb -h h -p 5433 -U postgres -O me 'a b'`,
    ],
    [
      failed('no pg_hba.conf entry', '28000'),
      'the server does not let it in: no pg_hba.conf entry. See to that, or correct DATABASE_URL.',
    ],
    [
      failed('the database system is starting up', '57P03'),
      'the server does not let it in: the database system is starting up. See to that, or correct DATABASE_URL.',
    ],
    [
      failed('server login has been failing, try again later (server_login_retry)', '08P01'),
      'PgBouncer is there, but does not get into its server: server login has been failing, try again later (server_login_retry). Start that server, or correct host= in the configuration of PgBouncer and run RELOAD.',
    ],
  ])('gives the reason and says what to do: %s', (error, reason) => {
    const { message, cause } = connectionError(url, client, error);
    expect(message).toBe(`DATABASE_URL is "postgresql://me:***@h:5433/a%20b", but ${reason}`);
    expect(cause).toBe(error);
  });

  it.each([
    ['postgresql://me:h@un/ter@h/d', true],
    ['postgresql://me:h@un#ter@h/d', true],
    ['postgresql://me:12/34@h/d', true],
    ['postgresql://me:hunter2@h/d', false],
    ['postgresql://me:h@unter2@h/d', false],
    ['postgresql://h/d?user=me@tenant', false],
    ['postgresql://h:5432?user=me@tenant', false],
  ])('says how to encode a password when its characters cut the URL %s: %s', (given, isCut) => {
    const { message } = connectionError(given, client, failed('getaddrinfo ENOTFOUND un', 'ENOTFOUND'));
    const encode =
      'cannot be reached: what it has for a host looks like a part of the password. A password with characters such as @, #, / or ? is written as encodeURIComponent makes it: see docs/configuration.md#passwords-in-urls.';
    expect(message.endsWith(encode)).toBe(isCut);
    expect(message.endsWith('unset it for the embedded database.')).toBe(!isCut);
    expect(message).not.toMatch(isCut ? /un|34/ : /unter/);
  });

  it('gives a single command for a new database when its role may create databases', () => {
    const { advice } = reasonOf({ ...client, user: 'postgres' }, failed('no such database', '3D000'));
    expect(advice).toBe(`Make it: createdb -h h -p 5433 -U postgres 'a b'`);
  });
});
