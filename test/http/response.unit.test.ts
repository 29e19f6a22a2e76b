import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Exchange } from '../../src/http/exchange.ts';
import { type HttpResponse, jsonResponse, revalidated, textResponse } from '../../src/http/response.ts';
import { send } from '../../src/http/send.ts';
import { type Exchanges, openExchanges } from '../support/exchanges.ts';

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

it('revalidated has the same ETag for the same bytes, and the headers that a 304 needs as well', () => {
  const one = revalidated(jsonResponse(200, '1'), 'Authorization', { Deprecation: '@1' });
  const headers = {
    ETag: expect.stringMatching(/^"[\w-]{43}"$/),
    'Cache-Control': 'private, no-cache',
    Vary: 'Authorization',
    Deprecation: '@1',
  };
  expect(one.validator).toEqual({ etag: one.headers.ETag, headers });
  expect(one.headers).toEqual({ ...jsonResponse(200, '1').headers, ...headers });
  expect(revalidated(jsonResponse(200, '1'), 'Accept').headers.ETag).toBe(one.headers.ETag);
  expect(revalidated(jsonResponse(200, '2'), 'Accept').headers.ETag).not.toBe(one.headers.ETag);
});

describe('send', () => {
  let handle: (exchange: Exchange) => void;
  let exchanges: Exchanges;
  let seen: Exchange | undefined;
  beforeAll(async () => {
    exchanges = await openExchanges((exchange) => {
      seen = exchange;
      handle(exchange);
    });
  });
  afterAll(() => exchanges?.close());
  const sending = (response: HttpResponse) => {
    handle = (exchange) => send(exchange, response);
  };
  const ask = (headers: Record<string, string> = {}) => fetch(exchanges.url, { headers });
  const plain = jsonResponse(200, '"…"');
  const tagged = revalidated(plain, 'Authorization');
  const tag = String(tagged.headers.ETag);

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

  it.each([
    ['the tag', tag],
    ['the tag, weak', `W/${tag}`],
    ['the tag among others', `"x" ,  ${tag} , W/"y"`],
    ['an asterisk', '*'],
  ])('sends a 304 if If-None-Match has %s', async (_, condition) => {
    handle = (exchange) => {
      exchange.headers.RateLimit = 'few';
      send(exchange, tagged);
    };
    const response = await ask({ 'If-None-Match': condition });
    expect(response.status).toBe(304);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      etag: tag,
      vary: 'Authorization',
      'cache-control': 'private, no-cache',
      ratelimit: 'few',
    });
    expect(response.headers.has('Content-Length')).toBe(false);
    expect(response.headers.has('Content-Type')).toBe(false);
  });

  it.each([
    ['another tag', tagged, '"x"'],
    ['a part of the tag', tagged, tag.slice(0, -2)],
    ['an asterisk, and the response has no tag', plain, '*'],
  ])('sends the whole response if If-None-Match has %s', async (_, response, condition) => {
    sending(response);
    expect((await ask({ 'If-None-Match': condition })).status).toBe(200);
  });

  it.each([
    ['without Vary', plain, 'Origin'],
    ['with Vary', tagged, 'Authorization, Origin'],
  ])('merges the Vary of the exchange into a response %s', async (_, response, expected) => {
    handle = (exchange) => {
      exchange.headers.Vary = 'Origin';
      send(exchange, response);
    };
    for (const headers of [{}, { 'If-None-Match': tag }])
      expect((await ask(headers)).headers.get('Vary')).toBe(expected);
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
