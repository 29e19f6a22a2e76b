/** Reservations of event streams, with fake timers. */

import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import {
  createEventStreams,
  type EventStreamsOptions,
} from '../../../src/graphql/transports/eventStreams.ts';
import { createUserQuota } from '../../../src/graphql/userQuota.ts';
import type { Exchange } from '../../../src/http/exchange.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const viewer = { id: 1, tokenId: 1 };

function createStreams(options: Partial<EventStreamsOptions> = {}) {
  const unwatch = vi.fn();
  const begin = () => {
    throw new Error('nothing begins');
  };
  const closing = new AbortController();
  const streams = createEventStreams({
    closing: closing.signal,
    operations: { begin, watch: () => unwatch },
    connectionQuota: createUserQuota(1),
    isOnlyProcess: true,
    ...options,
  });
  function reserve() {
    const exchange = { request: { method: 'PUT', headers: {} }, target: '/graphql' } as unknown as Exchange;
    const response = streams.handle(exchange, viewer);
    if (!response || !('status' in response)) throw new Error('it is no response');
    return response;
  }
  return { reserve, unwatch, close: () => closing.abort() };
}

it('a stream that is not opened for half a minute is removed, and no longer counts towards the quota', async () => {
  const { reserve, unwatch } = createStreams();
  expect(reserve().status).toBe(201);
  await vi.advanceTimersByTimeAsync(29_999);
  expect(reserve().status).toBe(429);
  await vi.advanceTimersByTimeAsync(1);
  expect(unwatch).toHaveBeenCalledOnce();
  expect(reserve().status).toBe(201);
});

it('a stream that was not opened is removed when the gateway closes, and a later one at once', () => {
  const { reserve, unwatch, close } = createStreams();
  expect(reserve().status).toBe(201);
  close();
  expect(unwatch).toHaveBeenCalledOnce();
  reserve();
  expect(unwatch).toHaveBeenCalledTimes(2);
  expect(vi.getTimerCount()).toBe(0);
});

it('with several processes a reservation is rejected with 501, and the error names the alternatives', () => {
  const { reserve } = createStreams({ isOnlyProcess: false });
  const { status, body } = reserve();
  expect(status).toBe(501);
  expect(String(body)).toContain('use a WebSocket, or a stream for each operation');
});
