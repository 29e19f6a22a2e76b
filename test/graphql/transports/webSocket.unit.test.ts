/** A WebSocket whose client is slow or silent, with a socket and a clock of the test's own. */

import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { WebSocket } from 'ws';
import type { PipelineAccess } from '../../../src/graphql/transports/operations.ts';
import { serveWebSocket, socketTimeouts } from '../../../src/graphql/transports/webSocket.ts';
import { createUserQuota } from '../../../src/graphql/userQuota.ts';
import type { Exchange } from '../../../src/http/exchange.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A socket that keeps what is sent until the test has it flushed. */
function createSocket({ saysWho = true, ...given }: Partial<PipelineAccess> & { saysWho?: boolean } = {}) {
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
  // A client is still being let in, unless the test says otherwise.
  const operations = {
    identify: () => new Promise(() => {}),
    watch: () => () => {},
    ...given,
  } as PipelineAccess;
  const options = { operations, places: createUserQuota(1), timeouts: socketTimeouts, onKnown() {} };
  const connection = serveWebSocket(socket as unknown as WebSocket, opening, options);
  if (saysWho) socket.emit('message', JSON.stringify({ type: 'connection_init' }), false);
  function say(length: number) {
    for (let rest = length; rest > 0; rest -= 5_000)
      socket.emit('message', JSON.stringify({ type: 'ping', payload: { text: 'x'.repeat(5_000) } }), false);
  }
  const subscribe = (id: string) =>
    socket.emit('message', JSON.stringify({ id, type: 'subscribe', payload: { query: '{ id }' } }), false);
  return { socket, say, subscribe, flush, report, connection, sentTexts };
}

/** A client that is let in, each of whose operations gets a result of 50,000 bytes. */
async function createReader() {
  const body = Buffer.from(JSON.stringify({ data: 'x'.repeat(50_000) }));
  const run = vi.fn(() => {
    // What is done with an exchange when it ends.
    const response = { headersSent: false, writeHead() {}, emit: () => true };
    const exchange = { response, headers: {} } as unknown as Exchange;
    return { exchange, response: Promise.resolve({ status: 200, headers: {}, body }) };
  });
  const reader = createSocket({ run, identify: async () => ({ viewer: { id: 1, tokenId: 1 } }) });
  await vi.advanceTimersByTimeAsync(0);
  reader.flush();
  return { ...reader, run };
}

it('is read no further while its client does not read, and further when it does', async () => {
  const { socket, say, flush } = createSocket();
  say(10_000);
  expect(socket.isPaused).toBe(false);
  say(60_000);
  expect(socket.isPaused).toBe(true);
  flush();
  expect(socket.isPaused).toBe(false);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(socket.terminate).not.toHaveBeenCalled();
});

it('begins no operations while its client does not read, whatever was read of them before', async () => {
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

it('holds no more of what its client does not read than a message above its bound', async () => {
  const { socket, subscribe } = await createReader();
  for (let id = 1; id <= 20; id++) subscribe(String(id));
  await vi.advanceTimersByTimeAsync(0);
  expect(socket.bufferedAmount).toBeLessThan(2 * 64 * 1024);
});

it('is cut off when a message waits for half a minute, whatever else of it is read', async () => {
  const { socket, subscribe, flush } = await createReader();
  for (let id = 1; id <= 20; id++) subscribe(String(id));
  for (let seconds = 0; seconds < 30; seconds += 10) {
    expect(socket.terminate).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(10_000);
    flush();
  }
  expect(socket.terminate).toHaveBeenCalled();
});

it('is read no further while pongs wait for its client', () => {
  const { socket, flush } = createSocket();
  for (let count = 0; count < 600; count++) socket.emit('ping', Buffer.alloc(125));
  expect(socket.isPaused).toBe(true);
  expect(socket.bufferedAmount).toBeLessThan(70_000);
  flush();
  flush();
  expect(socket.isPaused).toBe(false);
});

it('is cut off soon when the gateway closes and its client does not read', async () => {
  const { socket, subscribe, connection } = await createReader();
  for (let id = 1; id <= 5; id++) subscribe(String(id));
  await vi.advanceTimersByTimeAsync(0);
  void connection.leave();
  await vi.advanceTimersByTimeAsync(socketTimeouts.closing);
  expect(socket.terminate).toHaveBeenCalledOnce();
});

it('is cut off when what it was sent is not read for half a minute, and not for the want of a pong before', async () => {
  const { socket, say } = createSocket();
  say(70_000);
  await vi.advanceTimersByTimeAsync(socketTimeouts.unread - 1);
  expect(socket.terminate).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(socket.terminate).toHaveBeenCalledOnce();
});

it('is cut off when its client does not respond to a ping', async () => {
  const { socket } = createSocket();
  await vi.advanceTimersByTimeAsync(socketTimeouts.ping);
  socket.emit('pong');
  await vi.advanceTimersByTimeAsync(socketTimeouts.ping);
  expect(socket.ping).toHaveBeenCalledTimes(2);
  expect(socket.terminate).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(socketTimeouts.ping);
  expect(socket.terminate).toHaveBeenCalledOnce();
});

it('is cut off when its client does not close its side', async () => {
  const { socket } = createSocket();
  socket.emit('message', '{', false);
  expect(socket.close).toHaveBeenCalledWith(4400, expect.any(String));
  await vi.advanceTimersByTimeAsync(socketTimeouts.goodbye);
  expect(socket.terminate).toHaveBeenCalledOnce();
});

it('is closed with 4408 when its client does not say in time who it is, and not while that is being found out', async () => {
  const [silent, known] = [createSocket({ saysWho: false }), createSocket()];
  await vi.advanceTimersByTimeAsync(socketTimeouts.init);
  expect(silent.socket.close).toHaveBeenCalledWith(4408, 'Connection initialisation timeout');
  expect(known.socket.close).not.toHaveBeenCalled();
});

it('is closed with 4500 for what nobody has foreseen, of which the log says more than the client is told', async () => {
  const { socket, report } = createSocket({ identify: () => Promise.reject(new Error('unforeseen')) });
  await vi.advanceTimersByTimeAsync(0);
  expect(socket.close).toHaveBeenCalledWith(4500, 'Internal server error');
  expect(report).toHaveBeenCalledWith(new Error('unforeseen'));
});
