/** Which requests count as sent by the machine itself. */

import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { expect, it } from 'vitest';
import { isFromLoopback } from '../../src/http/request.ts';

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
