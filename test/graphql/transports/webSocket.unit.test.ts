/** A WebSocket whose client is slow or silent, with a fake socket and fake timers. */

import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { WebSocket } from 'ws';
import type { PipelineAccess } from '../../../src/graphql/transports/operations.ts';
import { serveWebSocket, socketTimeouts } from '../../../src/graphql/transports/webSocket.ts';
import { createUserQuota } from '../../../src/graphql/userQuota.ts';
import type { Exchange } from '../../../src/http/exchange.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A socket that buffers what is sent until the test flushes it. */
function createSocket({
  sendsInit = true,
  ...given
}: Partial<PipelineAccess> & { sendsInit?: boolean } = {}) {
  const sentTexts: string[] = [];
  const waiting: (() => void)[] = [];
  const report = vi.fn();
  const socket = Object.assign(new EventEmitter(), {
    OPEN: 1,
    readyState: 1,
    protocol: 'graphql-transport-ws',
    bufferedAmount: 0,
    isPaused: false,
    pause: vi.fn(() => {
      socket.isPaused = true;
    }),
    resume: vi.fn(() => {
      socket.isPaused = false;
    }),
    send(message: string | Buffer, _options: unknown, sent: () => void) {
      socket.bufferedAmount += message.length;
      sentTexts.push(String(message));
      waiting.push(sent);
    },
    ping: vi.fn(),
    pong(data: Buffer, _mask: boolean, sent: () => void) {
      socket.bufferedAmount += data.length;
      waiting.push(sent);
    },
    close: vi.fn(),
    terminate: vi.fn(),
  });
  function flush() {
    socket.bufferedAmount = 0;
    for (const sent of waiting.splice(0)) sent();
  }
  const opening = {
    id: 'test',
    request: { headers: {} },
    response: { emit() {} },
    report,
  } as unknown as Exchange;
  // The client is still being authenticated, unless the test says otherwise.
  const operations = {
    identify: () => new Promise(() => {}),
    watch: () => () => {},
    ...given,
  } as PipelineAccess;
  const options = { operations, connectionQuota: createUserQuota(1), timeouts: socketTimeouts, onKnown() {} };
  const connection = serveWebSocket(socket as unknown as WebSocket, opening, options);
  if (sendsInit) socket.emit('message', JSON.stringify({ type: 'connection_init' }), false);
  function sendPings(length: number) {
    for (let rest = length; rest > 0; rest -= 5_000)
      socket.emit('message', JSON.stringify({ type: 'ping', payload: { text: 'x'.repeat(5_000) } }), false);
  }
  const subscribe = (id: string) =>
    socket.emit('message', JSON.stringify({ id, type: 'subscribe', payload: { query: '{ id }' } }), false);
  return { socket, sendPings, subscribe, flush, report, connection, sentTexts };
}

/** An authenticated client, each of whose operations gets a result of 50,000 bytes. */
async function createReader() {
  const body = Buffer.from(JSON.stringify({ data: 'x'.repeat(50_000) }));
  const run = vi.fn(() => {
    // Only the members that are used when an exchange ends.
    const response = { headersSent: false, writeHead() {}, emit: () => true };
    const exchange = { response, headers: {} } as unknown as Exchange;
    return { exchange, response: Promise.resolve({ status: 200, headers: {}, body }) };
  });
  const reader = createSocket({ run, identify: async () => ({ viewer: { id: 1, tokenId: 1 } }) });
  await vi.advanceTimersByTimeAsync(0);
  reader.flush();
  return { ...reader, run };
}

it('a WebSocket is paused while its client does not read, and resumed when it does', async () => {
  const { socket, sendPings, flush } = createSocket();
  sendPings(10_000);
  expect(socket.isPaused).toBe(false);
  sendPings(60_000);
  expect(socket.isPaused).toBe(true);
  flush();
  expect(socket.isPaused).toBe(false);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(socket.terminate).not.toHaveBeenCalled();
});

it('a WebSocket starts no operations while its client does not read, even those whose messages were read before', async () => {
  const { socket, subscribe, flush, run, sentTexts } = await createReader();
  for (let id = 1; id <= 10; id++) subscribe(String(id));
  await vi.advanceTimersByTimeAsync(0);
  const began = run.mock.calls.length;
  for (let id = 11; id <= 20; id++) subscribe(String(id));
  await vi.advanceTimersByTimeAsync(0);
  expect(run).toHaveBeenCalledTimes(began);
  expect(socket.isPaused).toBe(true);
  for (let times = 0; times < 40; times++) {
    flush();
    await vi.advanceTimersByTimeAsync(0);
  }
  expect(run).toHaveBeenCalledTimes(20);
  expect(sentTexts.filter((text) => text.includes('complete'))).toHaveLength(20);
  expect(socket.isPaused).toBe(false);
});

it('a WebSocket buffers at most one message above its limit while its client does not read', async () => {
  const { socket, subscribe } = await createReader();
  for (let id = 1; id <= 20; id++) subscribe(String(id));
  await vi.advanceTimersByTimeAsync(0);
  expect(socket.bufferedAmount).toBeLessThan(2 * 64 * 1024);
});

it('a WebSocket is terminated when a message waits for half a minute, even if others are read meanwhile', async () => {
  const { socket, subscribe, flush } = await createReader();
  for (let id = 1; id <= 20; id++) subscribe(String(id));
  for (let seconds = 0; seconds < 30; seconds += 10) {
    expect(socket.terminate).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(10_000);
    flush();
  }
  expect(socket.terminate).toHaveBeenCalled();
});

it('a WebSocket is paused while its client does not read pongs', () => {
  const { socket, flush } = createSocket();
  for (let count = 0; count < 600; count++) socket.emit('ping', Buffer.alloc(125));
  expect(socket.isPaused).toBe(true);
  expect(socket.bufferedAmount).toBeLessThan(70_000);
  flush();
  flush();
  expect(socket.isPaused).toBe(false);
});

it('a WebSocket is terminated soon when the gateway closes and its client does not read', async () => {
  const { socket, subscribe, connection } = await createReader();
  for (let id = 1; id <= 5; id++) subscribe(String(id));
  await vi.advanceTimersByTimeAsync(0);
  void connection.leave();
  await vi.advanceTimersByTimeAsync(socketTimeouts.closing);
  expect(socket.terminate).toHaveBeenCalledOnce();
});

it('a WebSocket is terminated when nothing is read for half a minute, and not earlier for a missing pong', async () => {
  const { socket, sendPings } = createSocket();
  sendPings(70_000);
  await vi.advanceTimersByTimeAsync(socketTimeouts.unread - 1);
  expect(socket.terminate).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(socket.terminate).toHaveBeenCalledOnce();
});

it('a WebSocket is terminated when its client does not respond to a ping', async () => {
  const { socket } = createSocket();
  await vi.advanceTimersByTimeAsync(socketTimeouts.ping);
  socket.emit('pong');
  await vi.advanceTimersByTimeAsync(socketTimeouts.ping);
  expect(socket.ping).toHaveBeenCalledTimes(2);
  expect(socket.terminate).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(socketTimeouts.ping);
  expect(socket.terminate).toHaveBeenCalledOnce();
});

it('a WebSocket is terminated when its client does not close its side', async () => {
  const { socket } = createSocket();
  socket.emit('message', '{', false);
  expect(socket.close).toHaveBeenCalledWith(4400, expect.any(String));
  await vi.advanceTimersByTimeAsync(socketTimeouts.goodbye);
  expect(socket.terminate).toHaveBeenCalledOnce();
});

it('a WebSocket is closed with 4408 when its client does not initialise it in time, but not while its token is checked', async () => {
  const [silent, known] = [createSocket({ sendsInit: false }), createSocket()];
  await vi.advanceTimersByTimeAsync(socketTimeouts.init);
  expect(silent.socket.close).toHaveBeenCalledWith(4408, 'Connection initialisation timeout');
  expect(known.socket.close).not.toHaveBeenCalled();
});

it('a WebSocket is closed with 4500 after an unexpected error, which is reported and hidden from the client', async () => {
  const { socket, report } = createSocket({ identify: () => Promise.reject(new Error('unforeseen')) });
  await vi.advanceTimersByTimeAsync(0);
  expect(socket.close).toHaveBeenCalledWith(4500, 'Internal server error');
  expect(report).toHaveBeenCalledWith(new Error('unforeseen'));
});
