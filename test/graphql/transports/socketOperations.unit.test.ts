/** The operations of a WebSocket, with responses and timers that the test controls. */
import { afterEach, expect, it, vi } from 'vitest';
import { createSocketOperations } from '../../../src/graphql/transports/socketOperations.ts';
import type { Exchange } from '../../../src/http/exchange.ts';
import type { HttpResponse, StreamedResponse } from '../../../src/http/response.ts';

afterEach(() => void vi.useRealTimers());

/** Operations whose responses the test settles. */
function createOperations() {
  const settle: ((response: HttpResponse | StreamedResponse) => void)[] = [];
  const written: string[] = [];
  let rooms = 0;
  const operations = createSocketOperations({
    write: async (...messages) =>
      void written.push(...messages.map((each) => String(typeof each === 'string' ? each : each()))),
    run() {
      // Only the members that are used when an exchange ends.
      const response = { headersSent: false, writeHead() {}, emit: () => true };
      const exchange = { response, headers: {} } as unknown as Exchange;
      return { exchange, response: new Promise((settleResponse) => settle.push(settleResponse)) };
    },
    onUnauthorized: () => written.push('unauthorized'),
    onRoom: () => rooms++,
  });
  return { operations, settle, written, rooms: () => rooms };
}

const response: HttpResponse = { status: 200, headers: {}, body: Buffer.from('{"data":{}}') };
const query = { query: '{ viewer { id } }' };

it('when the gateway closes, a running query gets its result, and a subscription ends without a message', async () => {
  const { operations, settle, written } = createOperations();
  let cancelled = false;
  const stream = new ReadableStream<Uint8Array>({
    cancel() {
      cancelled = true;
    },
  });
  operations.start('query', query);
  operations.start('subscription', query);
  settle[1]?.({ status: 200, headers: {}, stream, ended() {} });
  await Promise.resolve();
  const finished = operations.finish();
  settle[0]?.(response);
  await finished;
  expect(written).toEqual([
    '{"id":"query","type":"next","payload":{"data":{}}}',
    '{"id":"query","type":"complete"}',
  ]);
  expect(cancelled).toBe(true);
});

it('at most a hundred operations run at a time, and another may start when one has its result', async () => {
  const { operations, settle, rooms } = createOperations();
  for (let id = 0; id < 100; id++) operations.start(String(id), query);
  expect(operations.isFull()).toBe(true);
  settle[0]?.(response);
  await expect.poll(rooms).toBe(1);
  expect(operations.isFull()).toBe(false);
});

it('a response that comes after its operation was completed is not written, even if the id is used again', async () => {
  const { operations, settle, written } = createOperations();
  operations.start('1', query);
  operations.complete('1');
  operations.start('1', query);
  settle[0]?.({ ...response, body: Buffer.from('{"data":"old"}') });
  settle[1]?.(response);
  await expect.poll(() => written.length).toBe(2);
  expect(written.join()).not.toContain('old');
});

it('no operation starts for a second after a response with status 429', async () => {
  vi.useFakeTimers();
  const { operations, settle, rooms } = createOperations();
  operations.start('1', query);
  settle[0]?.({ ...response, status: 429 });
  await vi.advanceTimersByTimeAsync(999);
  expect(operations.isFull()).toBe(true);
  const before = rooms();
  await vi.advanceTimersByTimeAsync(1);
  expect(operations.isFull()).toBe(false);
  expect(rooms()).toBe(before + 1);
});
