import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Exchange } from '../../src/http/exchange.ts';
import { jsonResponse, textResponse } from '../../src/http/response.ts';
import { send } from '../../src/http/send.ts';
import { openExchanges } from '../support/exchanges.ts';

it.each([
  [textResponse, 'text/plain; charset=utf-8', '…\n'],
  [jsonResponse, 'application/json; charset=utf-8', '…'],
])('%o has a type, a length in bytes, and the headers that it is given', (make, type, body) => {
  const length = { 'Content-Length': Buffer.byteLength(body) };
  const response = make(399, '…');
  expect(response.body.toString()).toBe(body);
  expect(response).toMatchObject({ status: 399, headers: { 'Content-Type': type, ...length } });
  expect(response.headers).not.toHaveProperty('Cache-Control');
  expect(make(400, '…').headers).toMatchObject({ 'Cache-Control': 'no-store' });
  const given = { 'Content-Type': 'a/b', 'Cache-Control': 'private', Allow: 'GET' };
  expect(make(404, '…', given).headers).toEqual({ ...given, ...length });
});

let handle: (exchange: Exchange) => void;
let seen: Exchange | undefined;
const exchanges = await openExchanges((exchange) => {
  seen = exchange;
  handle(exchange);
});
afterAll(exchanges.close);

describe('send', () => {
  const ask = (headers: Record<string, string> = {}) => fetch(exchanges.url, { headers });
  const plain = jsonResponse(200, '"…"');

  beforeEach(() => {
    seen = undefined;
  });

  it('sends the response with the headers that the exchange adds', async () => {
    handle = (exchange) => {
      exchange.headers.RateLimit = 'few';
      send(exchange, plain);
    };
    const response = await ask();
    expect(response.status).toBe(200);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'content-length': '5',
      ratelimit: 'few',
      'x-request-id': seen?.id,
      'x-content-type-options': 'nosniff',
    });
    expect(response.headers.has('Vary')).toBe(false);
    expect(await response.text()).toBe('"…"');
  });

  it('does nothing if a response was sent before', async () => {
    const again = vi.fn();
    handle = (exchange) => {
      send(exchange, plain);
      send(exchange, textResponse(500, 'again'));
      again();
    };
    expect((await ask()).status).toBe(200);
    expect(again).toHaveBeenCalled();
  });
});
