import { type IncomingMessage, ServerResponse } from 'node:http';
import { expect, it, onTestFinished, vi } from 'vitest';
import { createDeadlines, type Exchange, openExchange } from '../../src/http/exchange.ts';
import { nobodyListens } from '../support/exchanges.ts';

function open(complete = true): Exchange {
  const incoming = { headers: {}, url: '/', complete } as IncomingMessage;
  return openExchange(incoming, new ServerResponse(incoming), nobodyListens);
}

it('the timer of a request fires once, that long after it was begun first and the body was sent, unless it is ended', () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const late: unknown[] = [];
  const { begin, end } = createDeadlines(100, (exchange) => late.push(exchange));
  const [first, second, sending] = [open(), open(), open(false)];
  for (const exchange of [first, second, sending]) begin(exchange);
  vi.advanceTimersByTime(50);
  end(first);
  begin(second);
  vi.advanceTimersByTime(49);
  expect(late).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(late).toEqual([second]);
  sending.request.complete = true;
  vi.advanceTimersByTime(99);
  expect(late).toEqual([second]);
  vi.advanceTimersByTime(1);
  expect(late).toEqual([second, sending]);
  expect(vi.getTimerCount()).toBe(0);
});
