/** The server over a fake database: how it applies its settings, and how it handles failures. */

import { once } from 'node:events';
import { request, type Server } from 'node:http';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { digestOf } from '../../src/auth/tokens.ts';
import type { Database } from '../../src/database/database.ts';
import { createTurns } from '../../src/database/turns.ts';
import type { Hooks } from '../../src/extensionPoints.ts';
import { mostConnections } from '../../src/http/connections.ts';
import { jsonResponse } from '../../src/http/response.ts';
import { createResponseCache } from '../../src/http/responseCache.ts';
import { joinHooks } from '../../src/server/hooks.ts';
import type { ServerOptions } from '../../src/server/pipeline.ts';
import { createGatewayServer } from '../../src/server/server.ts';
import { createLogger } from '../../src/telemetry/log.ts';
import { createFakeFeed } from '../support/feed.ts';
import { listen } from '../support/listen.ts';
import { openRaw } from '../support/rawHttp.ts';
import { readConfig } from '../support/settings.ts';

const token = `dvt_${'a'.repeat(43)}`;
const viewerId = 1;

let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

/** Serves a user that has the token. */
async function open(settings: Record<string, string> = {}, options: Partial<ServerOptions> = {}) {
  const fake = createFakeFeed();
  const log: string[] = [];
  const row = {
    id: 7,
    userId: viewerId,
    scope: 'activate',
    lastUsedAt: new Date(),
    validUntil: null,
    digest: digestOf(token),
  };
  const pool = { options: { max: 10 }, query: vi.fn(async () => ({ rows: [] })) };
  const sql = {
    /** Statements that look up tokens find one, and all others never end. */
    run: vi.fn(async (text: string) => (text.includes('"ApiToken"') ? [row] : new Promise(() => {}))),
    findMany: vi.fn(() => new Promise(() => {})),
    /** How many tokens are still valid. */
    count: vi.fn(async () => 1),
  };
  const responseCache = createResponseCache(fake.feed, {
    maxBytes: 1_000_000,
    maxAge: 300,
  });
  const config = readConfig(settings);
  const opened = createGatewayServer({
    config,
    // The parts of a database that are used.
    database: { embedded: true, pool, sql } as unknown as Database,
    feed: fake.feed,
    responseCache,
    logger: createLogger('error', { write: (line: string) => log.push(line) }),
    turns: createTurns(10, config.MAX_WAITING),
    hooks: joinHooks([]),
    closing: new AbortController().signal,
    ...options,
  });
  server = opened;
  const url = await listen(opened);
  const ask = async (path: string, method = 'GET') => {
    const headers = { Authorization: `Bearer ${token}` };
    const response = await fetch(url + path, { method, headers });
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  return { ...fake, server: opened, url, ask, log, pool, sql, responseCache };
}

it('has the default timeouts, sends TCP keep-alive probes, and leaves descriptors for the connections of extensions', async () => {
  const hooks = joinHooks([{ connections: 20 }]);
  expect((await open({ DATABASE_CONNECTIONS: '10' }, { hooks })).server).toMatchObject({
    maxConnections: mostConnections(30),
    headersTimeout: 10_000,
    requestTimeout: 30_000,
    timeout: 120_000,
    // A proxy in front should close a connection first.
    keepAliveTimeout: 75_000,
    // How often it checks for timeouts.
    connectionsCheckingInterval: 1_000,
    keepAlive: true,
    // Node has it in seconds.
    keepAliveInitialDelay: 30,
  });
});

it('one proxy that it trusts may have more than half of the connections', async () => {
  const { url } = await open({ TRUST_PROXY: '1' }, { maxConnections: 4 });
  const [first] = [await openRaw(url), await openRaw(url), await openRaw(url)];
  first.socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  expect(await first.ended()).toContain('200 OK');
});

describe('/readyz', () => {
  const ofExtension = { readyLine: () => 'own: fresh' };
  const unheard = 'ready\nchange feed down; caching off\n';

  it.each([
    ['ready', true, true, {}, 200, 'ready\n'],
    ['without change feed', true, false, {}, 200, unheard],
    ['with an extension', true, true, ofExtension, 200, 'ready\nown: fresh\n'],
    ['without database', false, true, {}, 503, 'the database cannot be reached\n'],
  ] as const)('reports the state of the gateway: %s', async (_, reachable, listens, given, status, text) => {
    const { ask, pool, falter } = await open({}, { hooks: joinHooks([given]) });
    falter(listens);
    if (!reachable) pool.query.mockRejectedValue(new Error('away'));
    expect(await ask('/readyz')).toMatchObject({ status, text });
  });

  it('queries the database once for concurrent requests, and again for later ones', async () => {
    const { ask, pool, server } = await open();
    let arrived = 0;
    server.on('request', () => arrived++);
    let response = () => {};
    pool.query.mockImplementationOnce(
      () =>
        new Promise((resolve) => {
          response = () => resolve({ rows: [] });
        }),
    );
    const asking = Promise.all(Array.from({ length: 5 }, () => ask('/readyz')));
    await expect.poll(() => arrived, { interval: 5 }).toBe(5);
    response();
    expect((await asking).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect(pool.query).toHaveBeenCalledTimes(1);
    pool.query.mockRejectedValueOnce(new Error('away'));
    expect((await ask('/readyz')).status).toBe(503);
    expect((await ask('/readyz')).status).toBe(200);
    expect(pool.query).toHaveBeenCalledTimes(3);
  });

  it('responds 503 after a timeout if the database does not respond', async () => {
    const { ask, pool } = await open();
    pool.query.mockReturnValue(new Promise(() => {}));
    const began = performance.now();
    expect((await ask('/readyz')).status).toBe(503);
    expect(performance.now() - began).toBeGreaterThan(1_500);
  });
});

it.each([
  [' with STATEMENT_TIMEOUT=1', { STATEMENT_TIMEOUT: '1' }, {}, 6_000],
  [
    ' and the time that an extension adds',
    { STATEMENT_TIMEOUT: '1' },
    { hooks: joinHooks([{ longest: 50_000 }]) },
    56_000,
  ],
])(
  'a request whose statement never ends gets a 500 five seconds after the statement timeout%s',
  async (_, settings, options, longest) => {
    const { url, sql, log } = await open(settings, options);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    const asking = request(`${url}/api/v1/dtt`, { headers: { Authorization: `Bearer ${token}` } }).end();
    const responded = once(asking, 'response');
    while (sql.findMany.mock.calls.length + sql.run.mock.calls.length < 2)
      await new Promise((settle) => setImmediate(settle));
    vi.advanceTimersByTime(longest - 1);
    expect(log).toEqual([]);
    vi.advanceTimersByTime(1);
    const [response] = await responded;
    expect(response.statusCode).toBe(500);
    expect(log.join('')).toContain(`there was no response after ${longest} ms`);
  },
);

it.each(['/api/v1/dtt', '/graphql?query={viewer{id}}'])(
  'an unexpected error is masked, and logged with the request id that the client gets: %s',
  async (path) => {
    const { ask, sql, log } = await open();
    sql.run.mockRejectedValue(new Error('secret'));
    const { status, text, headers } = await ask(path);
    expect(status).toBe(500);
    expect(text).toContain('Internal server error');
    expect(text).not.toContain('secret');
    expect(log.map((line) => JSON.parse(line))).toMatchObject([
      { request: headers.get('X-Request-Id'), err: { message: 'secret' } },
    ]);
  },
);

it('a response that fails after its head is cut off, so that the client does not take it for complete', async () => {
  const { ask, responseCache, log } = await open();
  // A body that cannot be sent, which fails after the head.
  const asText = () => {
    throw new Error('it has no bytes');
  };
  const body = { length: 100, buffer: { byteLength: 100 }, toString: asText } as unknown as Buffer;
  const response = { ...jsonResponse(200, ''), headers: { 'Content-Length': 100 }, body };
  await responseCache.compute(viewerId, 'rest GET /dtt 50 0', async () => ({ response, isCacheable: true }));
  await expect(ask('/api/v1/dtt')).rejects.toThrow();
  expect(log).toHaveLength(1);
});

it('under overload everything gets a response that needs no database, and no unknown token is looked up', async () => {
  const { ask, sql, url } = await open({ MAX_WAITING: '1' });
  sql.findMany.mockImplementation(() => new Promise(() => {}));
  const statuses = new Set<number>();
  let id = 0;
  const askForMore = () => {
    ask(`/api/v1/dtt/${++id}`).then(
      ({ status }) => statuses.add(status),
      () => {},
    );
    return [...statuses];
  };
  await expect.poll(askForMore, { interval: 5 }).toEqual([503]);
  const { length } = sql.run.mock.calls;
  const statusOf = async (path: string, headers = {}) => (await fetch(url + path, { headers })).status;
  for (const headers of [{}, { Authorization: 'Bearer nonsense' }])
    expect(await statusOf('/api/v1/dtt', headers)).toBe(401);
  expect(await statusOf('/graphql', { Accept: 'text/html' })).toBe(200);
  expect(await statusOf('/healthz')).toBe(200);
  expect(await statusOf('/api/v1/nowhere', { Authorization: `Bearer dvt_${'b'.repeat(43)}` })).toBe(503);
  expect((await ask('/api/v1/nowhere')).status).toBe(404);
  expect(sql.run.mock.calls).toHaveLength(length);
});

it('two extensions cannot take part at a moment that has one', () => {
  const first: Hooks = { longest: 1, lines: [['a', '1']] };
  const second: Hooks = { longest: 2, lines: [['b', '2']] };
  expect(() => joinHooks([first, second])).toThrow('Two extensions take part at longest');
  const { longest: _, ...others } = second;
  const lines = [...(first.lines ?? []), ...(second.lines ?? [])];
  expect(joinHooks([first, others])).toMatchObject({ longest: 1, lines });
});

it('a read waits for one extension after the other, and the first response of one is that of the request', async () => {
  const waits = [undefined, jsonResponse(400, ''), undefined].map((early) => vi.fn(async () => early));
  const { ask } = await open({}, { hooks: joinHooks(waits.map((beforeRead) => ({ beforeRead }))) });
  expect((await ask('/api/v1/dtt')).status).toBe(400);
  expect(waits.map(({ mock }) => mock.calls.length)).toEqual([1, 1, 0]);
});
