import { type IncomingMessage, ServerResponse } from 'node:http';
import { expect, it, vi } from 'vitest';
import { createDeadlines, type Exchange, openExchange, requestWithin } from '../../src/http/exchange.ts';
import { nobodyListens } from '../support/exchanges.ts';

/** @param outer the request of which another one is a part, such as an operation of a WebSocket. */
function open(complete = true, outer?: IncomingMessage): Exchange {
  const own = { headers: {}, url: '/', complete } as IncomingMessage;
  const incoming = outer ? requestWithin(outer, 'POST', '/graphql', {}) : own;
  return openExchange(incoming, new ServerResponse(incoming), nobodyListens);
}

it('the timer of a request fires once, that long after it was begun first and the body was sent, unless it is ended', () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const late: unknown[] = [];
  const { begin, end } = createDeadlines(100, (exchange) => late.push(exchange));
  const [first, second, sending] = [open(), open(), open(false)];
  const within = open(true, sending.request);
  for (const exchange of [first, second, sending, within]) begin(exchange);
  vi.advanceTimersByTime(50);
  end(first);
  begin(second);
  vi.advanceTimersByTime(49);
  expect(late).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(late).toEqual([second, within]);
  sending.request.complete = true;
  vi.advanceTimersByTime(99);
  expect(late).toEqual([second, within]);
  vi.advanceTimersByTime(1);
  expect(late).toEqual([second, within, sending]);
  expect(vi.getTimerCount()).toBe(0);
});
