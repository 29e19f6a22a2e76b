/** Exchanges and their lines in the log: one per request, with its operation and without personal data. */

import { type IncomingMessage, request } from 'node:http';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { errorResponse, httpErrors } from '../../src/http/errorResponse.ts';
import { type Exchange, nameOfEndpoint } from '../../src/http/exchange.ts';
import { ambiguityOf } from '../../src/http/request.ts';
import { jsonResponse, textResponse } from '../../src/http/response.ts';
import { send } from '../../src/http/send.ts';
import { openExchanges } from '../support/exchanges.ts';
import { gatewayWith } from '../support/setUp.ts';

const { gateway, alice } = await gatewayWith(['alice'], { logLevel: 'info' });

const usableId = /^[\w.-]{1,64}$/;

/** Sends a request, and waits for its line in the log. */
async function lineOf(path: string, { headers, ...options }: RequestInit = {}) {
  const before = gateway.log.length;
  const began = performance.now();
  const response = await fetch(gateway.url + path, {
    redirect: 'manual',
    ...options,
    headers: { Authorization: `Bearer ${alice.token}`, ...headers },
  });
  await response.text();
  await expect.poll(() => gateway.log.length).toBeGreaterThan(before);
  const lines = gateway.log.slice(before);
  expect(lines).toHaveLength(1);
  const line = JSON.parse(lines[0] ?? '');
  expect(response.headers.get('X-Request-Id')).toBe(line.request);
  expect(line.ms).toBeGreaterThan(0);
  expect(line.ms).toBeLessThan(performance.now() - began);
  return { line, text: lines[0] ?? '' };
}

describe('the log line of a request', () => {
  const named = 'query Secret { mine: dttSession(databaseId: 1) { name } }';
  const several = '{ viewer { id } devices { nodes { id } } }';

  it.each<[string, string | undefined, string, string | undefined, number]>([
    ['/api/v1/dtt/sessions/SESSION', undefined, 'rest', 'GET /dtt/sessions/{id}', 200],
    ['/api/v1/dtt/2147483647', undefined, 'rest', 'GET /dtt/{id}', 404],
    ['/api/v1/secret', undefined, 'rest', undefined, 404],
    ['/graphql', named, 'graphql', 'query dttSession', 200],
    // From the cache.
    ['/graphql', named, 'graphql', 'query dttSession', 200],
    ['/graphql', several, 'graphql', 'query of several fields', 200],
    ['/graphql', '{ __typename devices { nodes { id } } }', 'graphql', 'query devices', 200],
    ['/graphql', '{ __typename }', 'graphql', 'query __typename', 200],
    ['/graphql', '{ secret }', 'graphql', undefined, 200],
    ['/healthz', undefined, 'page', '/healthz', 200],
    ['/guides/nothing', undefined, 'page', '/guides', 404],
  ])(
    'has the endpoint, the operation and the status of %s %s, and no secret',
    async (path, query, ...rest) => {
      const [endpoint, operation, status] = rest;
      const method = query === undefined ? 'GET' : 'POST';
      const headers = { 'Content-Type': 'application/json' };
      const init = query === undefined ? {} : { method, headers, body: JSON.stringify({ query }) };
      const { line, text } = await lineOf(path.replace('SESSION', String(alice.dttSessions[0])), init);
      expect(line).toMatchObject({ level: 30, msg: 'responded', endpoint, status, method });
      expect(line.operation).toBe(operation);
      expect(line.request).toMatch(usableId);
      expect(text).not.toContain(alice.token);
      expect(text).not.toMatch(/secret/i);
    },
  );

  it.each([
    ['used if it is plain', 'client-42.a_B', 'client-42.a_B'],
    ['replaced if it could forge a log line', 'x" "level":60', expect.not.stringContaining('level')],
    ['replaced if it is longer', 'x'.repeat(65), expect.stringMatching(/^[\da-f-]{36}$/)],
    ['replaced if it is a token', `dvt_${'A'.repeat(43)}`, expect.stringMatching(/^[\da-f-]{36}$/)],
    ['replaced if it is a part of the token', alice.token.slice(4), expect.stringMatching(/^[\da-f-]{36}$/)],
  ])('has the X-Request-Id of the client, which is %s', async (_, given, expected) => {
    const { line } = await lineOf('/healthz', { headers: { 'X-Request-Id': given } });
    expect(line.request).toEqual(expected);
  });
});

let handle: (exchange: Exchange) => void;
let seen: Exchange;
const exchanges = await openExchanges((exchange) => {
  seen = exchange;
  handle(exchange);
});
afterAll(exchanges.close);

describe('an exchange', () => {
  /** Sends a request with exactly this request target. */
  const ask = (path: string, headers: Record<string, string> = {}) =>
    new Promise<number | undefined>((resolve, reject) => {
      request(exchanges.url, { path, headers })
        .on('response', (response) => resolve(response.resume().statusCode))
        .on('error', reject)
        .end();
    });

  const envelopes = new Map([
    ['rest', '{"ok":false,"error":"Bad request"}'],
    ['graphql', '{"errors":[{"message":"Bad request","extensions":{"code":"BAD_USER_INPUT"}}]}'],
    ['page', 'Bad request\n'],
    ['own', '{"error":"Bad request"}'],
  ]);

  it.each([
    ['/api/v1', 'rest', '/api/v1', '/api/v1'],
    ['/api/v1/dtt?limit=1?', 'rest', '/api/v1/dtt?limit=1?', '/api/v1/dtt'],
    ['/api/v10', 'page', '/api/v10', '/api/v10'],
    ['/graphql?query={a}', 'graphql', '/graphql?query={a}', '/graphql'],
    ['/own', { name: 'own' }, '/own', '/own'],
    ['http://elsewhere/api/v1/dtt', 'rest', '/api/v1/dtt', '/api/v1/dtt'],
    ['HTTPS://elsewhere:1/graphql?query={a}', 'graphql', '/graphql?query={a}', '/graphql'],
    ['http://elsewhere', 'page', '/', '/'],
    ['http://elsewhere?a=/graphql', 'page', '/?a=/graphql', '/'],
    ['/http://elsewhere/graphql', 'page', '/http://elsewhere/graphql', '/http://elsewhere/graphql'],
  ])(
    'for the target %s has the endpoint %s, and errors in its envelope',
    async (target, endpoint, expected, path) => {
      handle = ({ response }) => response.end();
      await ask(target);
      expect(seen).toMatchObject({ endpoint, target: expected, path, operation: undefined });
      const { body } = errorResponse(seen.endpoint, httpErrors.badRequest);
      expect(String(body)).toBe(envelopes.get(nameOfEndpoint(seen.endpoint)));
    },
  );

  it('gets one response, all of it, and no second one', async () => {
    const again = vi.fn();
    handle = (exchange) => {
      send(exchange, jsonResponse(200, '"…"'));
      send(exchange, textResponse(500, 'again'));
      again();
    };
    expect(await (await fetch(exchanges.url)).text()).toBe('"…"');
    expect(again).toHaveBeenCalled();
  });

  it('whose client left before there was a status is logged without one', async () => {
    const before = exchanges.log().length;
    handle = ({ response }) => response.destroy();
    await expect(ask('/')).rejects.toThrow();
    await expect.poll(() => exchanges.log().length).toBe(before + 1);
    expect(exchanges.log().at(-1)).toMatchObject({ level: 30, msg: 'client left', request: seen.id });
    expect(exchanges.outcomes.at(-1)?.status).toBeUndefined();
    expect(exchanges.log().at(-1)).not.toHaveProperty('status');
  });

  it('whose client left in the middle of the response has the status that was sent, of which 5xx are warnings', async () => {
    handle = ({ response }) => {
      response.writeHead(500).write('some');
      response.destroy();
    };
    await ask('/').catch(() => {});
    await expect.poll(() => exchanges.outcomes.at(-1)?.status).toBe(500);
    expect(exchanges.log().at(-1)).toMatchObject({ level: 40 });
  });
});

const good = ['', 'x.test', 'x.test:', 'x.test:80', '127.0.0.1:4000', '[::1]', '[::1]:4000', 'x_y'];
const bad = ['a b', '"x"', '<x>', 'x:y', 'x/y', '[::1', '[]', 'x@y', 'x,y:80:81'];
const coding = 'Host: x; Transfer-Encoding: Chunked';
const anotherName = 'Host: x; From: x; If-None-Match: x; Authorization: x; If-None-Match: y';

it.each<[message: string | undefined, ...requests: string[]]>([
  // Only names count, not values.
  [undefined, 'Authorization: authorization; Host: host; X: host; Y: authorization', anotherName, coding],
  [undefined, ...good.map((host) => `Host: ${host}`)],
  ['Host must be a name or an address, with or without a port', ...bad.map((host) => `Host: ${host}`)],
  ['the request has no Host header', 'X: y', 'Authorization: x'],
  ['Transfer-Encoding must be chunked, or left out', 'Host: x; Transfer-Encoding: gzip, chunked'],
  [
    'the request has more than one Host header',
    'Host: x; HOST: x',
    'X: y; Host: x; Authorization: x; Host: x',
  ],
  ['the request has more than one Authorization header', 'AUTHORIZATION: x; Host: x; authorization: x'],
])('the ambiguity of a request is %s', (message, ...requests) => {
  for (const text of requests) {
    const pairs = text.split('; ').map((header) => header.split(': '));
    const headers = Object.fromEntries(pairs.map(([name = '', value]) => [name.toLowerCase(), value]));
    const problemIn = (httpVersion: string) =>
      // The parts of a request that are used.
      ambiguityOf({ httpVersion, rawHeaders: pairs.flat(), headers } as unknown as IncomingMessage);
    const expected = message && `Bad request: ${message}`;
    expect(problemIn('1.1'), text).toBe(expected);
    expect(problemIn('1.0'), text).toBe('host' in headers ? expected : undefined);
  }
});
