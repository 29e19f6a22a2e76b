import { type IncomingMessage, ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createDeadlines, openExchange } from '../../src/http/exchange.ts';
import { nobodyListens } from '../support/exchanges.ts';

describe('the timer of a request', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
  afterEach(() => void vi.useRealTimers());

  const open = (complete = true) => {
    const incoming = { headers: {}, url: '/', complete } as IncomingMessage;
    return openExchange(incoming, new ServerResponse(incoming), nobodyListens);
  };

  it('fires once, that long after it was begun first, unless it is ended', () => {
    const late: unknown[] = [];
    const { begin, end } = createDeadlines(100, (exchange) => late.push(exchange));
    const [first, second] = [open(), open()];
    for (const exchange of [first, second]) begin(exchange);
    vi.advanceTimersByTime(50);
    end(first);
    begin(second);
    vi.advanceTimersByTime(49);
    expect(late).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(late).toEqual([second]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('does not include the time in which the client sends the body', () => {
    const late: unknown[] = [];
    const { begin } = createDeadlines(100, (exchange) => late.push(exchange));
    const exchange = open(false);
    begin(exchange);
    vi.advanceTimersByTime(250);
    expect(late).toEqual([]);
    exchange.request.complete = true;
    vi.advanceTimersByTime(100);
    expect(late).toEqual([exchange]);
  });
});
