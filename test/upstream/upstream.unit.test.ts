/** How requests are sent to an upstream, and how its responses are read. */

import { setTimeout as sleep } from 'node:timers/promises';
import pLimit from 'p-limit';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { readPages } from '../../src/mirror/list.ts';
import { createBudget } from '../../src/upstream/budget.ts';
import {
  createUpstream,
  isMissing,
  isNotOffered,
  type Retry,
  Unauthorized,
  type Upstream,
  UpstreamError,
  UpstreamRejection,
} from '../../src/upstream/upstream.ts';
import { type FaultyProxy, openProxy, reply, shortTiming } from '../support/upstream.ts';

const token = 'secret-token';
const good = { ok: true, data: 'good' };

let server: FaultyProxy;
let upstream: Upstream;

beforeEach(async () => {
  server = await openProxy();
  upstream = createUpstream({ base: server.base, token, timing: shortTiming });
});
afterEach(() => server?.close());

/** Responds to each request with the next of these, and with the last one from then on. */
function respondWith(...responses: { status: number; body?: unknown; headers?: Record<string, string> }[]) {
  server.misbehave = (_request, response) => {
    const scripted = responses.length > 1 ? responses.shift() : responses[0];
    return reply(response, scripted?.status ?? 200, scripted?.body ?? good, scripted?.headers);
  };
}

describe('the client of an upstream', () => {
  it('sends the token and returns the data of the envelope', async () => {
    respondWith({ status: 200 });
    expect(await upstream.get('/users/me')).toBe('good');
    expect(server.requests).toEqual(['GET /users/me']);
    expect(server.authorizations).toEqual([`Bearer ${token}`]);
    expect(upstream.base).toBe(server.base);
  });

  it('requests JSON, and sends a body as JSON', async () => {
    const sent: unknown[] = [];
    server.misbehave = ({ method, headers }, response) => {
      sent.push([method, headers.accept, headers['content-type'], headers['content-length']]);
      return reply(response, 200, good);
    };
    await upstream.get('/dtt');
    expect(await upstream.post('/dtt/templates/1', { isActive: true })).toBe('good');
    expect(sent).toEqual([
      ['GET', 'application/json', undefined, undefined],
      ['POST', 'application/json', 'application/json', '17'],
    ]);
  });

  it('takes up no place among the concurrent requests while it waits for its budget or for a retry', async () => {
    const inTurn = pLimit(1);
    const { base } = server;
    const paused = createBudget(0);
    paused.pauseFor(60 * 60_000);
    const spent = createBudget(1);
    spent.note();
    const stop = new AbortController();
    const timing = { ...shortTiming, delay: 60_000, maxDelay: 60_000 };
    server.misbehave = ({ url }, response) => reply(response, url?.endsWith('/broken') ? 500 : 200, good);
    const waiting = [
      createUpstream({ base, token, timing, inTurn, budget: paused }).get('/dtt', stop.signal),
      createUpstream({ base, token, timing, inTurn, budget: spent, priority: 'details' }).get(
        '/dtt',
        stop.signal,
      ),
      createUpstream({ base, token, timing, inTurn }).get('/broken', stop.signal),
    ].map((each) => each.catch(() => 'stopped'));
    await expect.poll(() => server.requests).toEqual(['GET /broken']);
    expect(await createUpstream({ base, token, timing, inTurn }).get('/dtt')).toBe('good');
    stop.abort();
    expect(await Promise.all(waiting)).toEqual(['stopped', 'stopped', 'stopped']);
  });

  it('does not retry when the token is rejected', async () => {
    respondWith({ status: 401, body: { ok: false, error: 'Unauthorized' } });
    await expect(upstream.get('/dtt')).rejects.toThrow(Unauthorized);
    expect(server.requests).toHaveLength(1);
  });

  it.each([
    ['408', 408],
    ['429', 429],
    ['500', 500],
    ['503', 503],
  ])('retries a request after %s', async (_name, status) => {
    respondWith({ status }, { status }, { status: 200 });
    expect(await upstream.get('/dtt')).toBe('good');
    expect(server.requests).toHaveLength(3);
    expect(upstream.requestCount()).toBe(3);
  });

  it.each([
    ['a page in HTML', '<html>'],
    ['half of a JSON text', '{"ok":true,"data":'],
    ['JSON without the envelope', '[1,2]'],
  ])('retries a request after %s', async (_name, body) => {
    respondWith({ status: 200, body }, { status: 200 });
    expect(await upstream.get('/dtt')).toBe('good');
  });

  it('gives up after its limit of attempts, with a message that says what happened', async () => {
    respondWith({ status: 503 });
    await expect(upstream.get('/dtt')).rejects.toThrow(
      'GET /dtt: it responded with 503. Gave up after 5 attempts.',
    );
    expect(server.requests).toHaveLength(5);
  });

  it('gives up after the first attempt if it has no retries', async () => {
    respondWith({ status: 503 });
    const once = createUpstream({ base: server.base, token, timing: { ...shortTiming, retries: 0 } });
    await expect(once.get('/dtt')).rejects.toThrow(
      'GET /dtt: it responded with 503. Gave up after 1 attempt.',
    );
  });

  it('reports each retry', async () => {
    const retries: Retry[] = [];
    const onRetry = (retry: Retry) => retries.push(retry);
    respondWith({ status: 503 }, { status: 429 }, { status: 200 });
    await createUpstream({ base: server.base, token, timing: shortTiming, onRetry }).get('/dtt');
    expect(retries).toEqual([
      { reason: 'GET /dtt: it responded with 503', attempt: 2, attempts: 5 },
      { reason: 'GET /dtt: it responded with 429', attempt: 3, attempts: 5 },
    ]);
  });

  it('suggests that UPSTREAM_URL may be wrong at a 404 without the envelope', async () => {
    respondWith({ status: 404, body: '<h1>Not Found</h1>' });
    const base = server.base.replace('/api/v1', '');
    await expect(createUpstream({ base, token }).get('/dtt?limit=1')).rejects.toThrow(
      `${base}/dtt?… responded with 404. Does UPSTREAM_URL name the base of the REST interface, such as …/api/v1?`,
    );
  });

  it('doubles its delay before each retry, up to a limit and with jitter', async () => {
    respondWith({ status: 503 });
    const timing = { ...shortTiming, delay: 20, maxDelay: 50 };
    const random = vi.spyOn(Math, 'random').mockReturnValue(0.2);
    const timers = vi.spyOn(globalThis, 'setTimeout');
    try {
      await expect(createUpstream({ base: server.base, token, timing }).get('/dtt')).rejects.toThrow('503');
      const delays = timers.mock.calls.map(([, delay = 0]) => delay);
      // Those of the HTTP client are longer.
      expect(delays.filter((delay) => delay >= 20 && delay <= 100)).toEqual([24, 48, 50, 50]);
    } finally {
      random.mockRestore();
      timers.mockRestore();
    }
  });

  it.each([
    [404, { ok: false, error: 'DTT device not found' }, 'it responded with 404 "DTT device not found"'],
    [200, { ok: false, error: 'Nothing of yours' }, 'it responded with 200 "Nothing of yours"'],
    [400, good, 'it responded with 400'],
    [405, '<h1>Not Allowed</h1>', 'it responded with 405'],
  ])('takes %i with %j for a rejection, without a retry', async (status, body, message) => {
    respondWith({ status, body });
    const error = await upstream.get('/dtt').catch((caught: unknown) => caught);
    const said = typeof body === 'object' && 'error' in body ? body.error : undefined;
    const failure = { failure: `responded with ${status}`, method: 'GET', route: '/dtt', status };
    expect(error).toEqual(new UpstreamRejection(`GET /dtt: ${message}`, failure, said));
    expect(error).toMatchObject({ name: 'UpstreamRejection', status, said });
    expect(server.requests).toHaveLength(1);
  });

  it.each([
    ['a redirect without a location', { status: 302 }],
    ['a 304 without a body', { status: 304, body: '' }],
  ])('gives up after %s', async (_name, scripted) => {
    respondWith({ body: '<html>', ...scripted });
    await expect(upstream.get('/dtt')).rejects.toThrow(
      `GET /dtt: it responded with ${scripted.status} without the interface's envelope. Gave up after 5 attempts.`,
    );
  });

  it('does not take a 201 with a location for a redirect', async () => {
    respondWith({ status: 201, headers: { Location: '/elsewhere' } });
    expect(await upstream.get('/dtt')).toBe('good');
  });

  it('does not follow a redirect from https to http, which would send the token unencrypted', async () => {
    const fetched = vi.fn(async () => {
      const Location = 'http://example.com/api/v1/dtt';
      return new Response(null, { status: 307, headers: { Location } });
    });
    vi.stubGlobal('fetch', fetched);
    const secure = createUpstream({ base: 'https://example.com/api/v1', token, timing: shortTiming });
    await expect(secure.get('/dtt')).rejects.toThrow(
      'it redirects to "http://example.com/api/v1/dtt", which is not followed',
    );
    vi.unstubAllGlobals();
    expect(fetched).toHaveBeenCalledTimes(1);
  });

  it.each(['127.0.0.1', 'localhost'])('gives up if the connection is refused, at %s', async (host) => {
    await server.close();
    const { base } = server;
    const absent = createUpstream({ base: base.replace('127.0.0.1', host), token, timing: shortTiming });
    await expect(absent.get('/dtt')).rejects.toThrow(
      /^GET \/dtt: connect ECONNREFUSED \S+\. Gave up after 5 attempts\.$/,
    );
  });

  it('gives up if the upstream hangs before its response or in the middle of it', async () => {
    const withTimeout = createUpstream({
      base: server.base,
      token,
      timing: { ...shortTiming, timeout: 50, retries: 1 },
    });
    server.misbehave = () => true;
    await expect(withTimeout.get('/dtt')).rejects.toThrow(
      'no response within 0.05 s. Gave up after 2 attempts.',
    );
    server.misbehave = (_request, response) => response.writeHead(200).write('{"ok"');
    await expect(withTimeout.get('/dtt')).rejects.toThrow(
      'no response within 0.05 s. Gave up after 2 attempts.',
    );
  });

  it('waits as long as Retry-After says before it sends any request', async () => {
    respondWith({ status: 429, headers: { 'Retry-After': '1' } }, { status: 200 });
    const start = Date.now();
    // The longest pause that the client accepts is exactly as long as Retry-After.
    const client = createUpstream({
      base: server.base,
      token,
      timing: { ...shortTiming, longestPause: 1_000 },
    });
    const first = client.get('/dtt');
    await sleep(200);
    await Promise.all([first, client.get('/ossm')]);
    expect(Date.now() - start).toBeGreaterThanOrEqual(990);
  });

  it('accepts a date in Retry-After', async () => {
    // Dates of HTTP have no fractions of a second, so this is between one and two seconds ahead.
    const date = new Date(Date.now() + 2000).toUTCString();
    respondWith({ status: 503, headers: { 'Retry-After': date } }, { status: 200 });
    await upstream.get('/dtt');
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(date) - 10);
  });

  it('gives up if Retry-After is longer than its longest pause', async () => {
    respondWith({ status: 429, headers: { 'Retry-After': '3600' } });
    await expect(upstream.get('/dtt')).rejects.toThrow('GET /dtt: it asks to wait for 3600 s.');
    expect(server.requests).toHaveLength(1);
  });

  it.each(['99999999999999999999999', '9'.repeat(400), 'Fri, 31 Dec 9999 23:59:59 GMT'])(
    'takes an hour for a longer Retry-After: %s',
    async (wait) => {
      respondWith({ status: 429, headers: { 'Retry-After': wait } });
      await expect(upstream.get('/dtt')).rejects.toMatchObject({ retryAfter: 3_600 });
    },
  );

  it('stops reading a response that is too large', async () => {
    let sent = 0;
    server.misbehave = (_request, response) => {
      response.writeHead(200);
      const flood = () => {
        while (!response.destroyed && response.write('x'.repeat(65_536))) sent += 65_536;
      };
      response.on('drain', flood);
      flood();
      return true;
    };
    await expect(upstream.get('/dtt')).rejects.toThrow('GET /dtt: the response is larger than 4 MiB');
    expect(sent).toBeLessThan(32 * 1024 * 1024);
  });

  it('follows a few redirects within the upstream, and none to another origin', async () => {
    const elsewhere = await openProxy();
    elsewhere.misbehave = (_request, response) => reply(response, 200, good);
    respondWith({ status: 308, headers: { Location: '/api/v1/moved' } }, { status: 200 });
    expect(await upstream.get('/dtt')).toBe('good');
    respondWith({ status: 302, headers: { Location: `${elsewhere.base}/dtt` } });
    await expect(upstream.get('/dtt')).rejects.toThrow(`redirects to "${elsewhere.base}/dtt"`);
    respondWith({ status: 302, headers: { Location: '/api/v1/dtt' } });
    server.requests.length = 0;
    await expect(upstream.get('/dtt')).rejects.toThrow('which is not followed');
    expect(server.requests).toHaveLength(4);
    expect(upstream.requestCount()).toBe(7);
    expect(elsewhere.requests).toEqual([]);
    await elsewhere.close();
  });

  it.each([301, 302, 303, 307, 308])(
    'does not follow a redirect of a POST, which could repeat a write: %i',
    async (status) => {
      respondWith({ status, headers: { Location: '/api/v1/dtt/templates/2' } }, { status: 200 });
      await expect(upstream.post('/dtt/templates/1', { isActive: true })).rejects.toThrow(
        `POST /dtt/templates/1: it redirects to "${new URL(server.base).origin}/api/v1/dtt/templates/2", which is not followed`,
      );
      expect(server.requests).toEqual(['POST /dtt/templates/1']);
    },
  );

  it('quotes a rejection shortened, without the token and without control characters', async () => {
    respondWith({ status: 403, body: { ok: false, error: `No \u001b[31m${token}\n${'x'.repeat(1000)}` } });
    const error = await upstream.get('/dtt').catch((caught: unknown) => caught);
    if (!(error instanceof UpstreamRejection)) throw error;
    expect(error.message).toMatch(/^GET \/dtt: it responded with 403 "No {2}\[31m\*\*\* x+"$/);
    expect(error.message.length).toBeLessThan(300);
  });

  it('masks a token whole where a quote is shortened in the middle of it', async () => {
    respondWith({ status: 403, body: { ok: false, error: `${'x'.repeat(195)}${token}` } });
    await expect(upstream.get('/dtt')).rejects.toThrow(/^GET \/dtt: it responded with 403 "x{195}\*\*\*"$/);
  });

  it('stops waiting for a retry when it is aborted', async () => {
    respondWith({ status: 429, headers: { 'Retry-After': '1' } });
    const end = new AbortController();
    const response = upstream.get('/dtt', end.signal);
    setTimeout(() => end.abort(), 50);
    await expect(response).rejects.toThrow('aborted');
    expect(server.requests).toHaveLength(1);
  });

  it('cancels its open requests when it is aborted', async () => {
    const unhurried = createUpstream({
      base: server.base,
      token,
      timing: { ...shortTiming, timeout: 60_000 },
    });
    const end = new AbortController();
    const closed = new Promise<void>((settle) => {
      server.misbehave = (_request, response) => {
        response.on('close', settle);
        return true;
      };
    });
    const responses = [unhurried.get('/dtt', end.signal), unhurried.post('/dtt', {}, end.signal)];
    const outcomes = Promise.allSettled(responses);
    await expect.poll(() => server.requests, { interval: 5 }).toHaveLength(2);
    end.abort();
    await closed;
    expect(await outcomes).toMatchObject([
      { status: 'rejected', reason: { name: 'AbortError' } },
      { status: 'rejected', reason: { name: 'AbortError' } },
    ]);
  });
});

describe('an error of an upstream', () => {
  const rejection = (status: number, said?: string) =>
    new UpstreamRejection('no', { failure: 'no', status }, said);

  it.each([
    [rejection(404, 'gone'), true],
    [rejection(400, 'DTT device not found'), true],
    [rejection(403, 'NOT FOUND'), true],
    [rejection(404), false],
    [rejection(400, 'Invalid ID'), false],
    [new UpstreamError('not found', { failure: 'no' }), false],
  ])('says whether the record is missing: %o', (error, missing) => {
    expect(isMissing(error)).toBe(missing);
  });

  it.each([
    [rejection(404), true],
    [rejection(404, 'Not found'), true],
    [rejection(405), true],
    [rejection(501, 'Not implemented'), true],
    [rejection(400, 'Invalid ID'), true],
    [rejection(400), false],
    [rejection(403, 'Forbidden'), true],
    [rejection(403), false],
    [new UpstreamError('Invalid ID', { failure: 'no' }), false],
  ])('says whether the operation is not offered: %o', (error, absent) => {
    expect(isNotOffered(error)).toBe(absent);
  });
});

describe('the pages of a list', () => {
  /** Serves a list of ids, which may change after each request. */
  function serve(
    ids: (number | undefined)[],
    change: (request: number) => void = () => {},
    most = 100,
    paginationOf: (limit: number, offset: number) => unknown = (limit, offset) => ({ limit, offset }),
  ) {
    server.misbehave = (request, response) => {
      const query = new URL(request.url ?? '', server.base).searchParams;
      const offset = Number(query.get('offset'));
      const limit = Math.min(most, Number(query.get('limit')));
      const data = ids.slice(offset, offset + limit).map((id) => ({ id }));
      reply(response, 200, { ok: true, data: { data, pagination: paginationOf(limit, offset) } });
      change(server.requests.length);
      return true;
    };
  }

  async function readIds(isPaged?: boolean): Promise<number[]> {
    const ids: number[] = [];
    for await (const { items } of readPages(upstream, '/dtt', undefined, isPaged))
      ids.push(...items.map(({ id }) => id ?? 0));
    return ids;
  }

  const upTo = (count: number) => Array.from({ length: count }, (_, index) => count - index);

  it.each([0, 1, 99, 100, 101, 198, 199, 200, 250])(
    'are read to the end, each record once: %i records',
    async (count) => {
      serve(upTo(count));
      expect(await readIds()).toEqual(upTo(count));
    },
  );

  it.each([0, 1, 19, 20, 21, 39, 40, 100, 250])(
    'are read to the end if the upstream states a limit of 20 for each: %i records',
    async (count) => {
      serve(upTo(count), () => {}, 20);
      expect(await readIds()).toEqual(upTo(count));
    },
  );

  it.each([undefined, null, {}, { limit: 0 }, { limit: 'all' }])(
    'are read to the end, and no further, if the pagination is %j',
    async (pagination) => {
      serve(
        upTo(130),
        () => {},
        100,
        () => pagination,
      );
      expect(await readIds()).toEqual(upTo(130));
      expect(server.requests).toHaveLength(2);
    },
  );

  it('are read to the end if each is a bare array', async () => {
    server.misbehave = (request, response) => {
      const offset = Number(new URL(request.url ?? '', server.base).searchParams.get('offset'));
      const data = upTo(130).slice(offset, offset + 100);
      return reply(response, 200, { ok: true, data: data.map((id) => ({ id })) });
    };
    expect(await readIds()).toEqual(upTo(130));
  });

  it.each([
    ['at the end of a page', 99, 1],
    ['several times at the end of a page', 97, 3],
    ['at the beginning of a page', 100, 1],
  ])('are read to the end, each record once, if ids are missing %s', async (_name, start, count) => {
    const ids: (number | undefined)[] = upTo(250);
    ids.splice(start, count, ...Array.from({ length: count }, () => undefined));
    serve(ids);
    expect(await readIds()).toEqual(ids.map((id) => id ?? 0));
    expect(server.requests).toHaveLength(3);
  });

  it('fail when no record of a whole page has an id', async () => {
    serve(Array.from({ length: 150 }, () => undefined));
    await expect(readIds()).rejects.toThrow('GET /dtt: the list repeats itself at offset 0');
    expect(server.requests).toHaveLength(1);
  });

  it('lack no record when others are removed or added while they are read', async () => {
    // A record that is added at the beginning is found when reading starts over.
    const renewed = upTo(400);
    serve(renewed, (request) => {
      if (request === 2) renewed.splice(0, 3, 999);
    });
    expect(new Set(await readIds())).toEqual(new Set([999, ...upTo(400)]));
    server.requests.length = 0;
    const shrinking = upTo(400);
    serve(shrinking, (request) => {
      if (request === 2) shrinking.splice(10, 3);
    });
    expect(new Set(await readIds())).toEqual(new Set(upTo(400)));
    // When reading starts over, every record of the list has been read before.
    const shrinkingLater = upTo(400);
    serve(shrinkingLater, (request) => {
      if (request === 3) shrinkingLater.splice(150, 3);
    });
    expect(new Set(await readIds())).toEqual(new Set(upTo(400)));
    const growing = upTo(400);
    serve(growing, () => growing.unshift(growing.length + 1));
    expect(await readIds()).toEqual(expect.arrayContaining(upTo(400)));
  });

  it('fail when the list keeps shrinking', async () => {
    const ids = upTo(1000);
    serve(ids, () => ids.shift());
    await expect(readIds()).rejects.toThrow('GET /dtt: the list keeps changing while it is read');
  });

  it('fail when the list repeats itself', async () => {
    const data = upTo(100).map((id) => ({ id }));
    respondWith({ status: 200, body: { ok: true, data: { data, pagination: { limit: 100, offset: 0 } } } });
    await expect(readIds()).rejects.toThrow('GET /dtt: the list repeats itself');
    expect(server.requests).toHaveLength(2);
  });

  it.each([1, 99, 100, 101, 250])(
    'may be a single one with all of %i records, unless the list is known to be paged',
    async (count) => {
      const data = upTo(count).map((id) => ({ id }));
      respondWith({ status: 200, body: { ok: true, data } });
      expect(await readIds(false)).toEqual(upTo(count));
      if (count >= 100) await expect(readIds()).rejects.toThrow('GET /dtt: the ');
    },
  );

  it('fail when a later one is longer than was requested', async () => {
    serve(upTo(150));
    const { misbehave } = server;
    server.misbehave = (request, response) =>
      request.url?.includes('offset=0')
        ? misbehave(request, response)
        : reply(response, 200, { ok: true, data: upTo(150).map((id) => ({ id })) });
    await expect(readIds(false)).rejects.toThrow('the response is not a list of at most 100');
  });

  it.each([
    ['no list', { data: 'x' }],
    ['longer than was requested', { data: upTo(101).map((id) => ({ id })) }],
    ['null', null],
  ])('fail when the response is %s', async (_name, data) => {
    respondWith({ status: 200, body: { ok: true, data } });
    await expect(readIds()).rejects.toThrow('GET /dtt: the response is not a list of at most 100');
  });
});
