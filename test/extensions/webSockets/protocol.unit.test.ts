/** A WebSocket whose client is slow or silent, or reuses ids, with a fake socket and a fake pipeline. */

import { EventEmitter } from 'node:events';
import { ReadableStream } from 'node:stream/web';
import { beforeEach, expect, it, vi } from 'vitest';
import type { WebSocket } from 'ws';
import type { Operations } from '../../../src/extensions/webSockets/operations.ts';
import { createProtocol } from '../../../src/extensions/webSockets/protocol.ts';
import { createLimitedSocket } from '../../../src/extensions/webSockets/socket.ts';
import type { Exchange } from '../../../src/http/exchange.ts';
import type { HttpResponse, StreamedResponse } from '../../../src/http/response.ts';
import { createUserQuota } from '../../../src/http/userQuota.ts';
import { OperationFailed } from '../../../src/schema/liveReads.ts';

beforeEach(() => void vi.useFakeTimers());

const settled = () => vi.advanceTimersByTimeAsync(0);

/** A socket that buffers what is sent until the test flushes it. */
function createSocket() {
  const sent: string[] = [];
  const waiting: (() => void)[] = [];
  const socket = Object.assign(new EventEmitter(), {
    OPEN: 1,
    readyState: 1,
    protocol: 'graphql-transport-ws',
    bufferedAmount: 0,
    isPaused: false,
    pause() {
      socket.isPaused = true;
    },
    resume() {
      socket.isPaused = false;
    },
    send(message: string, onSent: () => void) {
      socket.bufferedAmount += message.length;
      sent.push(message);
      waiting.push(onSent);
    },
    ping: vi.fn(),
    close: vi.fn(),
    terminate: vi.fn(),
  });
  async function flush() {
    socket.bufferedAmount = 0;
    for (const onSent of waiting.splice(0)) onSent();
    await settled();
  }
  return { socket, sent, flush };
}

/** An exchange with only the members that are used when it ends. */
const createExchange = () =>
  ({
    headers: {},
    response: { headersSent: false, writeHead() {}, emit: () => true },
  }) as unknown as Exchange;

/** Opens a socket for a client that has not sent anything. */
function open(given: Partial<Operations> = {}, connectionQuota = createUserQuota(1)) {
  const { socket, ...others } = createSocket();
  const opening = { id: 'test', request: { headers: {} }, report() {} } as unknown as Exchange;
  const connection = createLimitedSocket(socket as unknown as WebSocket, opening);
  const operations = { identify: () => new Promise(() => {}), watchToken: () => () => {}, ...given };
  createProtocol({
    operations: operations as Operations,
    connectionQuota,
  }).opened(connection, connection);
  const receive = async (message: object) => {
    socket.emit('message', JSON.stringify(message), false);
    await settled();
  };
  const subscribe = (id: string) => receive({ id, type: 'subscribe', payload: { query: '{ id }' } });
  return { socket, connection, receive, subscribe, ...others };
}

const identified = { viewer: { id: 1, tokenId: 1, scope: 'read' }, hasExpired: false } as const;

/** A socket of an authenticated client, whose operations get their responses from the test, in their order. */
async function openKnown() {
  const settle: ((response: HttpResponse | StreamedResponse) => void)[] = [];
  const socket = open({
    identify: async () => identified,
    run: () => ({ exchange: createExchange(), response: new Promise((done) => settle.push(done)) }),
  });
  await socket.receive({ type: 'connection_init' });
  await socket.flush();
  socket.sent.length = 0;
  return { ...socket, settle };
}

const responseOf = (data: unknown): HttpResponse => ({
  status: 200,
  headers: {},
  body: Buffer.from(JSON.stringify({ data })),
});

const sendPings = async ({ receive }: ReturnType<typeof open>, length: number) => {
  for (let rest = length; rest > 0; rest -= 5_000)
    await receive({ type: 'ping', payload: { text: 'x'.repeat(5_000) } });
};

it('is paused while its client does not read, and resumed when it does', async () => {
  const opened = open();
  await sendPings(opened, 60_000);
  expect(opened.socket.isPaused).toBe(false);
  await sendPings(opened, 10_000);
  expect(opened.socket.isPaused).toBe(true);
  await opened.flush();
  expect(opened.socket.isPaused).toBe(false);
});

it('runs a hundred operations at a time, is paused meanwhile, and is not terminated for that', async () => {
  const { socket, subscribe, settle, flush } = await openKnown();
  for (let id = 1; id <= 110; id++) await subscribe(String(id));
  await vi.advanceTimersByTimeAsync(120_000);
  for (const [index, done] of settle.entries()) if (index < 20) done(responseOf(index));
  await settled();
  // The client has not read the results.
  expect([settle.length, socket.isPaused, socket.terminate.mock.calls]).toEqual([100, true, []]);
  // The result, and the message that it is complete.
  await flush();
  await flush();
  expect([settle.length, socket.isPaused]).toEqual([110, false]);
});

it('is terminated after two pings without a sign of its client, also while it is paused because its client does not read', async () => {
  for (const [sign, silence] of Object.entries({ pong: 24_000, message: 24_000, none: 12_000 })) {
    const opened = await openKnown();
    await sendPings(opened, sign === 'none' ? 70_000 : 0);
    await vi.advanceTimersByTimeAsync(12_000);
    opened.socket.emit(sign, JSON.stringify({ type: 'pong' }));
    await vi.advanceTimersByTimeAsync(silence);
    expect(opened.socket.terminate).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(12_000);
    expect(opened.socket.terminate).toHaveBeenCalled();
  }
});

it('is closed with 4408 when its client does not initialise it in time, but not while its token is checked', async () => {
  const [silent, known] = [open(), open()];
  await known.receive({ type: 'connection_init' });
  await vi.advanceTimersByTimeAsync(5_000);
  expect(silent.socket.close).toHaveBeenCalledWith(4408, 'Connection initialisation timeout');
  expect(known.socket.close).not.toHaveBeenCalled();
});

it('no longer watches its token and its client once it is closed', async () => {
  const stop = vi.fn();
  const { socket, receive } = open({ identify: async () => identified, watchToken: () => stop });
  await receive({ type: 'connection_init' });
  expect(stop).not.toHaveBeenCalled();
  socket.emit('close');
  expect(stop).toHaveBeenCalledOnce();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(socket.terminate).not.toHaveBeenCalled();
});

it('does not count if its client leaves while its token is checked', async () => {
  const quota = createUserQuota(1);
  let leave = () => {};
  const identify = async () => {
    leave();
    return identified;
  };
  const { socket, receive } = open({ identify }, quota);
  leave = () => {
    socket.readyState = 3;
    socket.emit('close');
  };
  await receive({ type: 'connection_init' });
  expect([socket.close.mock.calls.length, quota.acquire(1)]).toEqual([1, true]);
});

it('when the gateway closes, a running query gets its result, and a subscription ends without a message', async () => {
  const { socket, subscribe, settle, sent, connection, flush } = await openKnown();
  for (const id of ['query', 'subscription']) await subscribe(id);
  settle[1]?.({ status: 200, headers: {}, stream: new ReadableStream(), ended() {} });
  await settled();
  void connection.leave();
  await subscribe('late');
  settle[0]?.(responseOf(1));
  await settled();
  expect(socket.close).not.toHaveBeenCalled();
  await flush();
  await flush();
  expect(sent).toEqual([
    '{"id":"query","type":"next","payload":{"data":1}}',
    '{"id":"query","type":"complete"}',
  ]);
  expect(socket.close).toHaveBeenCalledWith(1001, 'The gateway closes');
});

it('is terminated after a while when the gateway closes and its client reads nothing', async () => {
  const { socket, subscribe, settle, connection } = await openKnown();
  await subscribe('1');
  settle[0]?.(responseOf('x'));
  await settled();
  void connection.leave();
  await vi.advanceTimersByTimeAsync(14_900);
  expect(socket.terminate).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(100);
  expect(socket.terminate).toHaveBeenCalledOnce();
});

it('sends no result and no end of an operation that was completed, even if its id is used again', async () => {
  const { receive, subscribe, settle, sent, flush } = await openKnown();
  await subscribe('1');
  await receive({ id: '1', type: 'complete' });
  await subscribe('1');
  settle[0]?.(responseOf('old'));
  await settled();
  settle[1]?.(responseOf('new'));
  await settled();
  await flush();
  await flush();
  expect(sent).toEqual(['{"id":"1","type":"next","payload":{"data":"new"}}', '{"id":"1","type":"complete"}']);
});

it('cancels a subscription that is completed, also if that is before its first result', async () => {
  const { receive, subscribe, settle } = await openKnown();
  const cancel = vi.fn();
  const streamed = () => ({
    status: 200,
    headers: {},
    stream: new ReadableStream({ cancel }),
    ended: cancel,
  });
  for (const id of ['begun', 'early']) await subscribe(id);
  settle[0]?.(streamed());
  await settled();
  for (const id of ['begun', 'early']) await receive({ id, type: 'complete' });
  settle[1]?.(streamed());
  await settled();
  expect(cancel).toHaveBeenCalledTimes(4);
});

it('is closed with 4403 when an operation, or a subscription that has begun, finds that the token has ended', async () => {
  const message = 'Unauthorized: the token has expired or was replaced';
  const errors = [{ message, extensions: { code: 'UNAUTHENTICATED' } }];
  const stream = new ReadableStream({
    start: (controller) => controller.error(new OperationFailed(errors)),
  });
  for (const response of [
    { status: 401, headers: {}, body: Buffer.from(JSON.stringify({ errors })) },
    { status: 200, headers: {}, stream, ended() {} },
  ]) {
    const { socket, subscribe, settle } = await openKnown();
    await subscribe('1');
    settle[0]?.(response);
    await settled();
    expect(socket.close).toHaveBeenCalledWith(4403, message);
  }
});
