/** The messages about a server that cannot be used. Errors of real servers are tested in `serve.test.ts`. */

import { readFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { connect as connectByTls } from 'node:tls';
import pg from 'pg';
import { expect, it } from 'vitest';
import { connectionError, isAway } from '../../src/database/connection.ts';

const failed = (message: string, code?: string) => Object.assign(new Error(message), { code });

it.each([
  ['postgresql://me:h@un/ter@h/d', true],
  ['postgresql://me:12/34@h/d', true],
  ['postgresql://me:h@unter2@h/d', false],
  ['postgresql://h:5432?user=me@tenant', false],
])('shows no part of a password whose characters cut the URL %s: %s', (given, isCut) => {
  const { message } = connectionError(given, failed('getaddrinfo ENOTFOUND un', 'ENOTFOUND'));
  expect(message.includes('looks like a part of the password')).toBe(isCut);
  expect(message).not.toMatch(isCut ? /un|34/ : /unter/);
  const said = new pg.DatabaseError('no such role', 0, 'error');
  expect(connectionError(given, said).message).toContain('no such role');
});

it('says each reason where a name has several addresses', () => {
  const { message } = connectionError('postgresql://h/d', new AggregateError([failed('a'), failed('b')]));
  expect(message).toContain('a; b');
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
  const withCode = (code: string) => Object.assign(new pg.DatabaseError(code, 0, 'error'), { code });
  const away = '08000 08P01 25006 57P01 57P02 57P03 57P05 53300 28000 28P01 3D000'.split(' ').map(withCode);
  const present = '25001 57P04 57014 53200 2F000 3D001 42601'.split(' ').map(withCode);
  const expired = new Error('certificate has expired');
  const lost = ['connect', 'getaddrinfo', 'read', 'write'].map((syscall) =>
    Object.assign(new Error(syscall), { code: 'ECONNRESET', syscall }),
  );
  for (const error of [refused, new AggregateError([refused]), ...away, ...lost, expired])
    expect([error, isAway(error)]).toEqual([error, true]);
  const others = [await caught(() => readFile(missing)), await caught(() => Buffer.from(7 as never))];
  expect(others).toMatchObject([{ code: 'ENOENT' }, { code: 'ERR_INVALID_ARG_TYPE' }]);
  for (const error of [...others, ...present]) expect([error, isAway(error)]).toEqual([error, false]);
});
