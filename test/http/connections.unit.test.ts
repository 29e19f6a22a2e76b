/** How many clients a process takes, by how many descriptors it may have, and how many of them from one address. */

import { createServer } from 'node:http';
import { Socket } from 'node:net';
import { expect, it } from 'vitest';
import { mostConnections, timeouts, watchConnections } from '../../src/http/connections.ts';

it.each([
  [1_024, 10, 814],
  [1_024, 192, 632],
  [300, 10, 90],
  [220, 10, 13],
  [128, 10, 8],
  [128, 192, 8],
  [Number.POSITIVE_INFINITY, 10, Number.POSITIVE_INFINITY],
])(
  'of %d descriptors, %d of them for its own connections, leaves as many for clients as are not needed otherwise',
  (descriptors, own, clients) => {
    expect(mostConnections(own, descriptors)).toBe(clients);
  },
);

it.each<[string, readonly string[], readonly boolean[], trustedProxies?: number]>([
  ['one network of IPv6', ['fd00::1', 'fd00::2', 'fd00::3'], [true, false, false]],
  ['several networks of IPv6', ['fd00::1', 'fd00:0:0:1::1', 'fd00:0:0:2::1'], [false, false, false]],
  ['one address of IPv4', ['127.0.0.1', '::ffff:127.0.0.1', '127.0.0.1'], [true, false, false]],
  ['a trusted proxy, unless one is left', ['::1', '::1', '::1'], [false, false, false], 1],
])(
  'beyond half of all connections, the oldest is ended of those from %s',
  (_, addresses, ended, proxies = 0) => {
    const server = createServer();
    server.maxConnections = 4;
    watchConnections(server, timeouts, new AbortController().signal, proxies);
    const sockets = addresses.map((value) => Object.defineProperty(new Socket(), 'remoteAddress', { value }));
    for (const socket of sockets) server.emit('connection', socket);
    expect(sockets.map((socket) => socket.writableEnded)).toEqual(ended);
    for (const socket of sockets) socket.destroy();
  },
);
