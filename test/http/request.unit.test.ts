/** Which requests count as sent by the machine itself, and how bodies are read. */

import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { expect, it } from 'vitest';
import { isFromLoopback, readBody } from '../../src/http/request.ts';

const local = '127.0.0.1';
const name = 'localhost:4000';

it.each<[string, boolean, string | undefined, Record<string, string>, number?]>([
  ['IPv4', true, local, { host: name }],
  ['another address of the network', true, '127.8.0.1', { host: '127.8.0.1' }],
  ['IPv6', true, '::1', { host: '[::1]:4000' }],
  ['IPv4 as IPv6', true, '::ffff:127.0.0.1', { host: name }],
  ['another machine', false, '192.0.2.1', { host: name }],
  ['another machine as IPv6', false, '::ffff:192.0.2.1', { host: name }],
  ['a socket without an address', false, undefined, { host: name }],
  ['no host', false, local, {}],
  ['a proxy that keeps the host', false, local, { host: 'gateway.example' }],
  ['a name of another site', false, local, { host: 'localhost.example:4000' }],
  ...['X-Forwarded-For', 'Forwarded', 'X-Real-IP', 'Via'].map(
    (header): [string, boolean, string, Record<string, string>] => [
      `a proxy that sends ${header}`,
      false,
      local,
      { host: name, [header.toLowerCase()]: '' },
    ],
  ),
  ['a proxy of TRUST_PROXY', false, local, { host: name }, 1],
])('a request from %s: %s', (_, expected, address, headers, trustedProxies = 0) => {
  const socket = Object.defineProperty(new Socket(), 'remoteAddress', { value: address });
  const request = Object.assign(new IncomingMessage(socket), { headers });
  expect(isFromLoopback(request, trustedProxies)).toBe(expected);
});

it('a body is read from many small pieces, none of which is kept', async () => {
  const request = new IncomingMessage(new Socket());
  const text = 'abc'.repeat(1_000);
  const reading = readBody(request, text.length);
  for (const [index, character] of [...text].entries()) {
    const piece = Buffer.from(character);
    request.emit('data', piece);
    // The first one may be the whole body, which is not copied.
    if (index > 0) piece.fill('-');
  }
  request.emit('end');
  expect(String(await reading)).toBe(text);
});

it.each([
  ['no piece', [], ''],
  ['one piece', ['abcd'], 'abcd'],
  ['an empty piece before others', ['', 'ab', 'cd'], 'abcd'],
  ['as many bytes as the limit', ['abc', 'de'], 'abcde'],
  ['a byte more than the limit', ['abc', 'def'], undefined],
])('a body of %s is read, up to the limit', async (_, pieces, expected) => {
  const request = new IncomingMessage(new Socket());
  const reading = readBody(request, 5);
  for (const piece of pieces) request.emit('data', Buffer.from(piece));
  request.emit('end');
  expect((await reading)?.toString()).toBe(expected);
});
