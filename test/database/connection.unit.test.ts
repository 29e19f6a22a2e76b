/** The messages about a server that cannot be used. Errors of real servers are tested in `serve.test.ts`. */

import { readFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { connect as connectByTls } from 'node:tls';
import pg from 'pg';
import { expect, it, vi } from 'vitest';
import { connectionError, isAway } from '../../src/database/connection.ts';

const url = 'postgresql://me:hunter2@h:5433/a%20b';
const client = { host: 'h', port: 5433, user: 'me', database: 'a b' };
const failed = (message: string, code?: string) => Object.assign(new Error(message), { code });

const start = 'Start the server, or correct DATABASE_URL; unset it for the embedded database.';

it.each<[string, string | undefined, string]>([
  ['connect EPERM 127.0.0.1:5433', 'EPERM', `cannot be reached: connect EPERM 127.0.0.1:5433. ${start}`],
  ['wrong password', '28P01', 'the server does not accept its password (wrong password)'],
  ['role "me" does not exist', '28000', 'the server has no such role (role "me" does not exist)'],
  ['The server does not support SSL connections', undefined, 'the server does not offer TLS (The server'],
  ['self-signed', 'DEPTH_ZERO_SELF_SIGNED_CERT', 'server is not trusted (self-signed). Add sslrootcert='],
  ['no match', 'ERR_TLS_CERT_ALTNAME_INVALID', 'server is not trusted (no match). Add sslrootcert='],
  ['expired', 'CERT_HAS_EXPIRED', 'server is not trusted (expired). Add sslrootcert='],
  ['SASL: client password must be a string', undefined, 'the server asks for a password, which it lacks'],
  ['no database', '3D000', "no such database (no database). Make it: createdb -h h -p 5433 -U me 'a b'"],
  ['no pg_hba.conf entry', '28000', 'the server does not let it in: no pg_hba.conf entry'],
])('gives the reason and says what to do: %s (%s)', (said, code, says) => {
  const error = failed(said, code);
  const { message, cause } = connectionError(url, client, error);
  expect(message).toMatch(/^DATABASE_URL is "postgresql:\/\/me:\*\*\*@h:5433\/a%20b", but /);
  expect(message).toContain(says);
  expect(cause).toBe(error);
});

it.each([
  ['The server does not support SSL connections', undefined],
  ['self-signed', 'DEPTH_ZERO_SELF_SIGNED_CERT'],
])('tells of a PGSSLMODE, which asks for TLS in place of the URL: %s', (said, code) => {
  const advice = () => connectionError(url, client, failed(said, code)).message;
  const without = advice();
  vi.stubEnv('PGSSLMODE', 'require');
  expect(advice()).toBe(`${without} PGSSLMODE is set, and asks for TLS where a URL has no sslmode.`);
  vi.unstubAllEnvs();
});

it.each([
  ['postgresql://me:h@un/ter@h/d', true],
  ['postgresql://me:12/34@h/d', true],
  ['postgresql://me:h@unter2@h/d', false],
  ['postgresql://h:5432?user=me@tenant', false],
])('says how to encode a password when its characters cut the URL %s: %s', (given, isCut) => {
  const { message } = connectionError(given, client, failed('getaddrinfo ENOTFOUND un', 'ENOTFOUND'));
  expect(message.includes('looks like a part of the password. A password with characters such as')).toBe(
    isCut,
  );
  expect(message.endsWith(start)).toBe(!isCut);
  expect(message).not.toMatch(isCut ? /un|34/ : /unter/);
});

it('takes a TLS handshake that is cut off for a database that is away', async () => {
  const server = createServer((socket) => socket.once('data', () => socket.end()));
  const error = await new Promise((settle) => {
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      connectByTls({ host: '127.0.0.1', port }).on('error', settle);
    });
  });
  server.close();
  expect(error).not.toHaveProperty('syscall');
  expect(isAway(error)).toBe(true);
});

it('takes errors of connections and of a server that stops for a database that is away, and no others', async () => {
  const caught = (run: () => unknown) =>
    Promise.resolve()
      .then(run)
      .catch((error: unknown) => error);
  const missing = join(import.meta.dirname, 'missing');
  const refused = await new Promise((settle) => connect(missing).on('error', settle));
  const stopping = Object.assign(new pg.DatabaseError('stops', 0, 'error'), { code: '57P01' });
  const wrong = Object.assign(new pg.DatabaseError('wrong', 0, 'error'), { code: '42601' });
  expect([refused, new AggregateError([refused]), stopping].map(isAway)).toEqual([true, true, true]);
  const others = [await caught(() => readFile(missing)), await caught(() => Buffer.from(7 as never)), wrong];
  expect(others).toMatchObject([{ code: 'ENOENT' }, { code: 'ERR_INVALID_ARG_TYPE' }, { code: '42601' }]);
  expect(others.map(isAway)).toEqual([false, false, false]);
});
