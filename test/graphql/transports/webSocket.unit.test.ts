/** A WebSocket whose client is slow or silent, with a socket and a clock of the test's own. */

import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { WebSocket } from 'ws';
import { createPerUser } from '../../../src/graphql/perUser.ts';
import type { Operations } from '../../../src/graphql/transports/operations.ts';
import { socketTimeouts, speak } from '../../../src/graphql/transports/webSocket.ts';
import type { Exchange } from '../../../src/http/exchange.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A socket that keeps what is sent until the test has it flushed. */
function createSocket({ saysWho = true, identify = (): Promise<never> => new Promise(() => {}) } = {}) {
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
    send(message: string, _options: unknown, sent: () => void) {
      socket.bufferedAmount += message.length;
      waiting.push(sent);
    },
    ping: vi.fn(),
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
  // What follows is about clients that are still being let in.
  const operations = { identify } as unknown as Operations;
  const options = { operations, places: createPerUser(1), timeouts: socketTimeouts, onKnown() {} };
  speak(socket as unknown as WebSocket, opening, options);
  if (saysWho) socket.emit('message', JSON.stringify({ type: 'connection_init' }), false);
  const say = (length: number) =>
    socket.emit('message', JSON.stringify({ type: 'ping', payload: { text: 'x'.repeat(length) } }), false);
  return { socket, say, flush, report };
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
