/** Which requests count as sent by the machine itself, which media types their clients accept, and how bodies are read. */

import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { expect, it, vi } from 'vitest';
import { forwardingHeaders, requestWithin } from '../../src/http/exchange.ts';
import { acceptedOf, isFromLoopback, readBody } from '../../src/http/request.ts';

const local = '127.0.0.1';
const name = 'localhost:4000';

it.each<[string, boolean, string | undefined, Record<string, string>, number?]>([
  ['IPv4', true, local, { host: name }],
  ['another address of the network', true, '127.8.0.1', { host: '127.8.0.1' }],
  ['IPv6', true, '::1', { host: '[::1]:4000' }],
  ['a rooted name', true, local, { host: 'localhost.:4000' }],
  ...['x@localhost', 'localhost/x', 'localhost:99999', 'x[::1]'].map(
    (host): [string, boolean, string, Record<string, string>] => [`the host ${host}`, false, local, { host }],
  ),
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
])(
  'a request from %s, and an operation of its WebSocket: %s',
  (_, expected, address, headers, trustedProxies = 0) => {
    const socket = Object.defineProperty(new Socket(), 'remoteAddress', { value: address });
    const request = Object.assign(new IncomingMessage(socket), { headers });
    const own = Object.fromEntries(forwardingHeaders.map((header) => [header, headers[header]]));
    for (const each of [request, requestWithin(request, 'POST', '/graphql', own)])
      expect(isFromLoopback(each, trustedProxies)).toBe(expected);
  },
);

const types = ['application/json', 'text/plain', 'text/html'] as const;
const [json, plain, html] = types;

it.each<[string | undefined, string[]]>([
  [undefined, [json, plain, html]],
  ['*/*', [json, plain, html]],
  [' Application/JSON ; charset="UTF-8" ', [json]],
  ['text/html;charset=utf8, application/json;charset="UTF8";q=0.5', [html, json]],
  ['application/json;charset=iso-8859-1', []],
  ['application/json;profile=x;seq=1', [json]],
  ['', [json, plain, html]],
  ['text/*', [plain, html]],
  // By weight, then in the order of the header.
  ['text/html, application/json', [html, json]],
  ['text/html;q=0.5, application/json;q=0.4, text/plain;q=0', [html, json]],
  // The most specific range counts.
  ['*/*, text/html;q=0', [json, plain]],
  ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', [html, json, plain]],
  // An invalid weight counts as 0.
  ['text/html;q=x', []],
])('reads from the header %j which of the types are accepted, best first', (accept, accepted) => {
  expect(acceptedOf(types, accept)).toEqual(accepted);
});

it('ignores a header that is too long, and would take long to read', () => {
  expect(acceptedOf([plain, html], ` text/html${',*/*;q=0.1'.repeat(99)}`)).toEqual([html, plain]);
  expect(acceptedOf([plain, html], `  text/html${',*/*;q=0.1'.repeat(99)}`)).toEqual([plain, html]);
});

it('a body is read from many small pieces, none of which is kept or has all before it copied', async () => {
  const copied = vi.spyOn(Buffer, 'concat');
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
  expect(copied.mock.calls.length).toBeLessThan(20);
});

it.each([
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
