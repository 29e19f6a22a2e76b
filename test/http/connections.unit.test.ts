/** How many clients a process takes, by how many descriptors it may have, and how many of them from one address. */

import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { connect, Socket } from 'node:net';
import { expect, it, vi } from 'vitest';
import { addressOf } from '../../src/http/clientAddress.ts';
import { mostConnections, timeouts, watchConnections } from '../../src/http/connections.ts';
import type { Exchange } from '../../src/http/exchange.ts';
import { listen } from '../support/listen.ts';

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

it.runIf(process.platform === 'linux')('takes as many descriptors as this process may have', () => {
  const descriptors = Number(execFileSync('sh', ['-c', 'ulimit -n'], { encoding: 'utf8' }));
  expect(mostConnections(10)).toBe(mostConnections(10, descriptors));
});

const exchangeOf = (socket: Socket, state: string) =>
  // The parts of an exchange that are used.
  ({
    endpoint: 'rest',
    request: { socket, complete: !['upload', 'rejected'].includes(state), headers: {} },
    response: {
      ...{ socket, shouldKeepAlive: true, headersSent: !['running', 'upload'].includes(state) },
      writableFinished: !['running', 'stream', 'upload'].includes(state),
      writeHead: vi.fn().mockReturnThis(),
      end: vi.fn(),
    },
    hasViewer: state !== 'page',
    isInQuota: state.endsWith('stream'),
  }) as unknown as Exchange;

// The connections before the new one: the requests of each, and its address if it is another than that of the one before.
it.each<[ended: string, number[], before: string, trustedProxies?: number]>([
  ['the oldest', [0], 'silent silent silent'],
  ['the oldest that is idle', [1], 'running user user+page'],
  ['the oldest without a token', [2], 'user user+page page'],
  ['none whose request or response is on its way', [1], 'upload page running'],
  ['itself, if all others are busy', [3], 'upload running running'],
  ['none beside streams', [], 'stream stream stream page page'],
  ['one whose stream has ended', [1], 'stream endedstream running running'],
  ['none beside closed ones', [], 'gone gone gone page page'],
  ['the oldest, if a later one is closed', [0], 'page gone page page'],
  ['none of another address', [1], 'page@10.0.0.1 page@::ffff:127.0.0.1 page@127.0.0.1 page'],
  ['none of another network', [1], 'page@fd00:0:0:1::1 page@fd00::1 page@fd00::2 page@fd00::3'],
  ['none, if there are no more from an address', [], 'page@10.0.0.1 page@10.0.0.2 page'],
  ['none from a trusted proxy, unless one is left', [], 'silent silent silent silent', 1],
  ['the oldest from a trusted proxy, if one is left', [0], 'silent silent silent silent silent', 1],
])(
  'beyond half of all connections, a new one from the address of the last ends %s',
  (_, expected, before, trustedProxies = 0) => {
    const server = createServer();
    server.maxConnections = 6;
    const { begin } = watchConnections(server, timeouts, new AbortController().signal, trustedProxies);
    let address = '127.0.0.1';
    const sockets = `${before} silent`.split(' ').map((connection) => {
      const [requests = '', value = address] = connection.split('@');
      address = value;
      const socket = Object.defineProperty(new Socket(), 'remoteAddress', { value });
      server.emit('connection', socket);
      if (requests === 'gone') socket.emit('close');
      else
        for (const each of requests.split('+')) if (each !== 'silent') void begin(exchangeOf(socket, each));
      return socket;
    });
    const ended = sockets.flatMap((socket, index) => (socket.writableEnded ? index : []));
    expect(ended).toEqual(expected);
    for (const socket of sockets) socket.destroy();
  },
);

it.each<[state: string, grace: number, outcome: string | number | false, after: number]>([
  ['silent', 5_000, 'ended', 5_000],
  ['user', 5_000, 'ended', 1_000],
  ['user', 50, 'ended', 50],
  ['running', 5_000, false, 5_000],
  ['stream', 5_000, 'destroyed', 5_000],
  ['upload', 5_000, 408, 5_000],
  ['rejected', 5_000, 'destroyed', 5_000],
])('a server that closes handles a connection, %s, within %d ms of grace: %s after %d ms', (...row) => {
  vi.useFakeTimers();
  const [state, closing, outcome, after] = row;
  const server = createServer();
  server.maxConnections = 6;
  const closed = new AbortController();
  const { begin } = watchConnections(server, { ...timeouts, closing }, closed.signal, 0);
  const socket = new Socket();
  server.emit('connection', socket);
  const exchange = exchangeOf(socket, state);
  const { response } = exchange;
  if (state !== 'silent') void begin(exchange);
  closed.abort();
  // Only a response without a head yet can say that it is the last.
  expect(response.shouldKeepAlive).toBe(response.headersSent);
  const outcomeNow = () =>
    vi.mocked(response.writeHead).mock.calls[0]?.[0] ??
    (socket.writableEnded ? 'ended' : socket.destroyed && 'destroyed');
  vi.advanceTimersByTime(after - 1);
  expect(outcomeNow()).toBe(false);
  vi.advanceTimersByTime(1);
  expect(outcomeNow()).toBe(outcome);
  server.emit('close');
  // A connection that was ended is cut, and nothing else is left.
  vi.advanceTimersByTime(1_000);
  expect([socket.destroyed, vi.getTimerCount()]).toEqual([typeof outcome === 'string', 0]);
});

it('the address of a client is known also after the client has closed the connection', async () => {
  const server = createServer();
  watchConnections(server, timeouts, new AbortController().signal, 0);
  // What an event of a server is emitted with.
  const requested = once(server, 'request') as Promise<[IncomingMessage]>;
  const { port } = new URL(await listen(server));
  const socket = connect(Number(port), '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  const [request] = await requested;
  socket.destroy();
  await once(request.socket, 'close');
  expect(addressOf(request, 0)).toBe('127.0.0.1');
  server.close();
});
