import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createEarlyShedder } from '../../src/http/earlyShedding.ts';
import { type Exchange, openExchange } from '../../src/http/exchange.ts';
import { tooBusy } from '../../src/http/loadShedding.ts';
import { send } from '../../src/http/response.ts';
import { type Exchanges, nobodyListens, openExchanges } from '../support/exchanges.ts';

const authorization = 'Bearer dvt_mine';

describe('early shedding', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
  afterEach(() => void vi.useRealTimers());

  interface Asked {
    request?: Partial<Pick<IncomingMessage, 'method' | 'url' | 'headers'>>;
    last?: Partial<Exchange>;
    shedder?: { isOverload?: boolean; rejects?: boolean };
    /** How long the turn of the event loop has lasted, in milliseconds, and how long ago it ended. */
    turn?: number;
    ago?: number;
  }

  /** Whether a request is shed. By default all conditions for that are met. */
  async function isShed({ request = {}, last = {}, shedder = {}, turn = 11, ago }: Asked) {
    const { isOverload = true, rejects = true } = shedder;
    const onRejected = vi.fn();
    const early = createEarlyShedder({
      shedder: { isOverload: () => isOverload, tryReject: () => rejects },
      onRejected,
    });
    const headers = { authorization };
    const incoming = { method: 'GET', url: '/api/v1/dtt', headers, ...request } as IncomingMessage;
    const outgoing = { writeHead: vi.fn(), end: vi.fn(), on: vi.fn() } as unknown as ServerResponse;
    const before = { ...incoming, url: '/api/v1/dtt/1', headers } as IncomingMessage;
    const exchange = Object.assign(openExchange(before, outgoing, nobodyListens), { waitsAs: 7, ...last });
    // The first request of a turn, whose length is not known yet.
    expect(early.rejectEarly(incoming, outgoing, undefined)).toBe(false);
    vi.advanceTimersByTime(turn);
    if (ago !== undefined) {
      await new Promise(setImmediate);
      vi.advanceTimersByTime(ago);
    }
    const wasShed = early.rejectEarly(incoming, outgoing, exchange);
    expect(outgoing.end).toHaveBeenCalledTimes(Number(wasShed));
    expect(onRejected.mock.calls).toEqual(wasShed ? [['rest']] : []);
    return wasShed;
  }

  it.each<[string, Asked]>([
    ['that comes late in a turn of the event loop', {}],
    ['that comes soon after a turn that was too long', { ago: 900 }],
    ['for another path of the same API', { request: { url: '/api/v1/lkbx', method: 'POST' } }],
    ['with a query', { request: { url: '/api/v1?id=1' } }],
  ])('rejects a request %s', async (_, asked) => {
    expect(await isShed(asked)).toBe(true);
  });

  it.each<[string, Asked]>([
    ['while there is no overload', { shedder: { isOverload: false } }],
    ['whose client has fewer requests waiting than others', { shedder: { rejects: false } }],
    ['while turns of the event loop are short', { turn: 10 }],
    ['when turns have been short again for a second', { ago: 1_001 }],
    [
      'on a connection whose last request did not have to wait for the database',
      { last: { waitsAs: undefined } },
    ],
    [
      'of another client on the same connection',
      { request: { headers: { authorization: 'Bearer dvt_other' } } },
    ],
    ['without a token on the same connection', { request: { headers: {} } }],
    ['to the other API', { request: { url: '/graphql' } }],
    ['for a page', { request: { url: '/healthz' } }],
    [
      'from a page of another origin',
      { request: { headers: { authorization, origin: 'https://a.example' } } },
    ],
    ['that is a preflight', { request: { method: 'OPTIONS' } }],
    ['with Expect: 100-continue', { request: { headers: { authorization, expect: '100-continue' } } }],
  ])('does not reject a request %s', async (_, asked) => {
    expect(await isShed(asked)).toBe(false);
  });
});

describe('the 503 of early shedding', () => {
  let exchanges: Exchanges;
  afterEach(() => exchanges.close());

  it.each(['/api/v1/dtt', '/graphql'])('is the same as that of the load shedder, at %s', async (path) => {
    const early = createEarlyShedder({
      shedder: { isOverload: () => true, tryReject: () => true },
      onRejected() {},
    });
    let last: Exchange | undefined;
    exchanges = await openExchanges((exchange) => {
      const { request, response } = exchange;
      if (early.rejectEarly(request, response, last)) return;
      last = exchange;
      exchange.waitsAs = 1;
      const until = performance.now() + 11;
      while (performance.now() < until);
      send(exchange, tooBusy(exchange));
    });
    const ask = async () => {
      const response = await fetch(exchanges.url + path, { headers: { 'X-Request-Id': 'mine' } });
      const { date, ...headers } = Object.fromEntries(response.headers);
      return { status: response.status, headers, body: await response.text() };
    };
    const usual = await ask();
    expect(usual).toMatchObject({ status: 503, headers: { 'x-request-id': 'mine', 'retry-after': '1' } });
    const first = last;
    expect(await ask()).toEqual(usual);
    expect(last).toBe(first);
  });
});
