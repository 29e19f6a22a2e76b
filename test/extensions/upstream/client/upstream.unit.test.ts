/** How requests are sent to an upstream, and how its responses are read. */

import { setTimeout as sleep } from 'node:timers/promises';
import pLimit from 'p-limit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createBudget } from '../../../../src/extensions/upstream/client/budget.ts';
import { isUnconnected, responseLimit } from '../../../../src/extensions/upstream/client/http.ts';
import {
  createUpstream,
  isForbidden,
  isMissing,
  isNotOffered,
  readRetryAfter,
  type Timing,
  type Upstream,
  UpstreamError,
  type UpstreamOptions,
  UpstreamRejection,
} from '../../../../src/extensions/upstream/client/upstream.ts';
import { readPages } from '../../../../src/extensions/upstream/mirror/list.ts';
import { openScripted, reply, type Scripted } from '../support/scripted.ts';

const token = 'secret-token';
const good = { ok: true, data: 'good' };
const shortTiming: Timing = { timeout: 2_000, retries: 4, delay: 1, longestPause: 2_000 };

/** A text of an upstream that a message quotes shortened, without the token and without control characters. */
const long = `No \u001b[31m${token}\n${'x'.repeat(1000)}`;

let server: Scripted;
let upstream: Upstream;

beforeEach(async () => {
  server = await openScripted();
  upstream = clientWith({});
});
afterEach(() => server?.close());

const clientWith = (timing: Partial<Timing>, more: Partial<UpstreamOptions> = {}) =>
  createUpstream({ base: server.base, token, timing: { ...shortTiming, ...timing }, ...more });

/** All that an error says, with a ! if the request may have been carried out; the result, if there is no error. */
const errorOf = (asking: Promise<unknown>): Promise<unknown> =>
  asking.catch(({ name, message, mayHaveActed, ...more }: UpstreamError) => [
    `${name}${mayHaveActed ? '!' : ''}: ${message}`,
    more,
  ]);

/** What the log may show of a request to `/dtt`. */
const failureOf = (failure: string, method = 'GET') => ({ failure: { failure, method, route: '/dtt' } });

/** Responds to each request with the next of these, and with the last one from then on. */
function respondWith(...responses: { status: number; body?: unknown; headers?: Record<string, string> }[]) {
  server.respond = (_request, response) => {
    const scripted = responses.length > 1 ? responses.shift() : responses[0];
    return reply(response, scripted?.status ?? 200, scripted?.body ?? good, scripted?.headers);
  };
}

describe('the client of an upstream', () => {
  it('sends the token, asks for JSON, sends a body as JSON, and returns the data of the envelope', async () => {
    respondWith({ status: 200 });
    expect(await upstream.get('/dtt')).toBe('good');
    expect(await upstream.post('/dtt/templates/1', { isActive: true })).toBe('good');
    expect(upstream).toMatchObject({ base: server.base, isConfigured: false });
    const names = ['authorization', 'accept', 'content-type', 'content-length'];
    const json = 'application/json';
    expect(
      server.requests.map(({ method, headers }) => [method, ...names.map((name) => headers[name])]),
    ).toEqual([
      ['GET', `Bearer ${token}`, json, undefined, undefined],
      ['POST', `Bearer ${token}`, json, json, '17'],
    ]);
  });

  it('takes up no place among the concurrent requests while it waits for its budget or for a retry', async () => {
    const inTurn = pLimit(1);
    const paused = createBudget(0);
    paused.pauseFor(60 * 60_000);
    const spent = createBudget(1);
    spent.note();
    const stop = new AbortController();
    const clientIn = (more: Partial<UpstreamOptions>) => clientWith({ delay: 60_000 }, { inTurn, ...more });
    server.respond = ({ url }, response) => reply(response, url?.endsWith('/broken') ? 500 : 200, good);
    const waiting = [
      clientIn({ budget: paused }).get('/dtt', stop.signal),
      clientIn({ budget: spent, priority: 'details' }).get('/dtt', stop.signal),
      clientIn({}).get('/broken', stop.signal),
    ].map((each) => each.catch(() => 'stopped'));
    await expect.poll(() => server.requests).toMatchObject([{ target: '/api/v1/broken' }]);
    expect(await clientIn({}).get('/dtt')).toBe('good');
    stop.abort();
    expect(await Promise.all(waiting)).toEqual(['stopped', 'stopped', 'stopped']);
  });

  it('gives up after so many retries, succeeds after less, and sends a write once', async () => {
    respondWith({ status: 503 });
    await expect(upstream.get('/dtt')).rejects.toThrow('GET /dtt: it responded with 503');
    expect(upstream.requestCount()).toBe(shortTiming.retries + 1);
    await expect(upstream.post('/dtt', {})).rejects.toThrow('POST /dtt: it responded with 503');
    respondWith(...Array(shortTiming.retries).fill({ status: 503 }), { status: 200 });
    expect(await upstream.get('/dtt')).toBe('good');
    const count = 2 * shortTiming.retries + 3;
    expect([upstream.requestCount(), server.requests.length]).toEqual([count, count]);
  });

  const no = (error: string) => ({ ok: false, error });
  const bare = "without the interface's envelope";
  const moved = { Location: '/api/v1/elsewhere?a' };
  const elsewhere = [
    'it redirects to "BASE/elsewhere", which is not followed',
    'redirects to where it is not followed',
  ];
  const busy = { 'Retry-After': '3' };
  const wait = ['it asks to wait for 3 s. Gave up: try again then.', 'asks to wait for 3 s'];
  const hint = 'Does UPSTREAM_URL name the base of the REST interface?';
  it.each<[number, Record<string, string>, object | string, string, ...(string | undefined)[]]>([
    [401, {}, good, 'Unauthorized', 'the upstream does not accept the token', 'rejected the token'],
    // It could send the token elsewhere.
    [300, moved, good, 'UpstreamError!', ...elsewhere],
    [399, moved, good, 'UpstreamError!', ...elsewhere],
    [300, {}, good, 'Unavailable!', `it responded with 300 ${bare}`],
    [200, moved, '<html>', 'Unavailable!', `it responded with 200 ${bare}`],
    [200, {}, '{"ok":true,"data":', 'Unavailable!', `it responded with 200 ${bare}`],
    [200, {}, [1, 2], 'Unavailable!', `it responded with 200 ${bare}`],
    [400, moved, good, 'UpstreamRejection', 'it responded with 400'],
    [404, {}, '<html>', 'UpstreamRejection', `it responded with 404. ${hint}`],
    [404, {}, no('not here'), 'UpstreamRejection', 'it responded with 404 "not here"'],
    [200, {}, no('not yours'), 'UpstreamRejection', 'it responded with 200 "not yours"'],
    // Shortened, without the token and without control characters.
    [403, {}, no(long), 'UpstreamRejection', `it responded with 403 "No  [31m*** ${'x'.repeat(188)}"`],
    [408, {}, good, 'Unavailable', 'it responded with 408'],
    [429, {}, good, 'Unavailable', 'it responded with 429'],
    [500, {}, good, 'Unavailable!', 'it responded with 500'],
    [429, busy, good, 'UpstreamBusy', ...wait],
    [503, busy, good, 'UpstreamBusy!', ...wait],
  ])(
    'takes %i with %j and %j for %s: %s; and asks again if it is not available',
    async (status, headers, body, name, text, failure) => {
      respondWith({ status, body, headers });
      const routes: string[] = [];
      const client = clientWith({ retries: 1 }, { onUnauthorized: (each) => void routes.push(each) });
      const path = '/dtt/12/x3/4?limit=5/6';
      const route = '/dtt/{id}/x3/{id}';
      const more = {
        UpstreamRejection: { status, said: Object(body).error },
        UpstreamBusy: { retryAfter: 3 },
      };
      expect(await errorOf(client.get(path))).toEqual([
        `${name}: GET ${path}: ${text?.replace('BASE', server.base)}`,
        {
          ...more[name.replace('!', '') as keyof typeof more],
          failure: {
            ...{ failure: failure ?? `responded with ${status}`, method: 'GET', route },
            ...(name !== 'UpstreamError!' && { status }),
          },
        },
      ]);
      const sent = name.startsWith('Unavailable') ? 2 : 1;
      expect([routes, server.requests.length]).toEqual([status === 401 ? [route] : [], sent]);
    },
  );

  it.each(['http://127.0.0.1', 'http://localhost', 'https://127.0.0.1'])(
    'gives up if no connection is made, at %s',
    async (origin) => {
      // A plain server understands no TLS.
      const isRefused = origin.startsWith('http:');
      if (isRefused) server.close();
      const client = clientWith({}, { base: server.base.replace('http://127.0.0.1', origin) });
      // Nothing was sent to a server that has refused the connection.
      const message = isRefused
        ? /^Unavailable: POST \/dtt: connect ECONNREFUSED \S+$/
        : /^Unavailable!: .*SSL/;
      const error = [expect.stringMatching(message), failureOf('cannot be reached', 'POST')];
      expect(await errorOf(client.post('/dtt', {}))).toEqual(error);
    },
  );

  it('knows which errors are of a connection that was not made', () => {
    const unconnected = 'ECONNREFUSED EHOSTUNREACH ENETUNREACH ENOTFOUND EAI_AGAIN';
    const errors = `${unconnected} ECONNRESET EPIPE`
      .split(' ')
      .map((code) => Object.assign(new Error(), { code }));
    expect(errors.filter(isUnconnected).map(({ code }) => code)).toEqual(unconnected.split(' '));
    expect(isUnconnected(undefined)).toBe(false);
  });

  it('repeats a read at once if its connection was idle and is closed, and no other request', async () => {
    const client = clientWith({ retries: 0 });
    const steps = [() => client.get('/dtt'), () => client.post('/dtt', {}), () => client.get('/dtt')];
    const results: unknown[] = [];
    for (const step of steps) {
      server.respond = (_request, response) => {
        server.respond = (_again, other) => reply(other, 200, good);
        response.destroy();
      };
      results.push(String(await errorOf(step())).split(':', 1)[0]);
      // This connection is idle at the next step. There was none before the first.
      await client.get('/dtt');
    }
    expect(results).toEqual(['Unavailable!', 'Unavailable!', 'good']);
    expect(server.requests.map(({ method }) => method).join()).toBe('GET,GET,POST,GET,GET,GET,GET');
  });

  it('gives up if the upstream hangs before its response or in the middle of it', async () => {
    const message = 'Unavailable!: POST /dtt: no response within 0.05 s';
    const error = [message, failureOf('did not respond in time', 'POST')];
    for (const begins of [false, true]) {
      server.respond = (_request, response) => void (begins && response.writeHead(200).write('{"ok"'));
      expect(await errorOf(clientWith({ timeout: 50 }).post('/dtt', {}))).toEqual(error);
    }
  });

  it('gives up if the budget has nothing left for longer than its longest pause', async () => {
    const budget = createBudget(1);
    budget.note();
    const message = 'GET /dtt: the budget of the account has nothing left for 61 s. Gave up: try again then.';
    const error = [`UpstreamBusy: ${message}`, { ...failureOf('asks to wait for 61 s'), retryAfter: 61 }];
    expect(await errorOf(clientWith({}, { budget, priority: 'demand' }).get('/dtt'))).toEqual(error);
    expect(server.requests).toEqual([]);
  });

  it('waits as long as Retry-After says before it sends any request, unless the request succeeds', async () => {
    const headers = { 'Retry-After': '1' };
    respondWith({ status: 429, headers }, { status: 200, headers });
    const start = Date.now();
    // The longest pause that the client accepts is exactly as long as Retry-After.
    const client = clientWith({ longestPause: 1_000 });
    const first = client.get('/dtt');
    await sleep(200);
    await Promise.all([first, client.get('/ossm')]);
    expect(Date.now() - start).toBeGreaterThanOrEqual(990);
    const sending = Date.now();
    await client.get('/dtt');
    expect(Date.now() - sending).toBeLessThan(900);
  });

  it('reads Retry-After in seconds and as a date, and takes an hour for more', () => {
    const date = (milliseconds: number) => new Date(Date.now() + milliseconds).toUTCString();
    const given = ['2', '0', '-1', '.5', '1e3', 'soon', null];
    expect(given.map(readRetryAfter)).toEqual([2_000, 0, 0, 0, 0, 0, 0]);
    expect(readRetryAfter(date(60_000))).toBeGreaterThan(58_000);
    expect(readRetryAfter(date(-60_000))).toBe(0);
    for (const longer of ['9'.repeat(20), '9'.repeat(400), 'Fri, 31 Dec 9999 23:59:59 GMT'])
      expect(readRetryAfter(longer)).toBe(3_600_000);
  });

  it('stops reading a response that is too large', async () => {
    let sent = 0;
    server.respond = (_request, response) => {
      response.writeHead(200);
      const flood = () => {
        while (!response.destroyed && response.write('x'.repeat(65_536))) sent += 65_536;
      };
      response.on('drain', flood);
      flood();
    };
    const message = 'UpstreamError!: GET /dtt: the response is larger than 4 MiB';
    const error = [message, failureOf('responded with what cannot be understood')];
    expect(await errorOf(upstream.get('/dtt'))).toEqual(error);
    expect(sent).toBeLessThan(32 * 1024 * 1024);
    respondWith({ status: 200, body: JSON.stringify(good).padEnd(responseLimit) });
    expect(await upstream.get('/dtt')).toBe('good');
  });

  it('cancels its open requests when it is aborted', async () => {
    const unhurried = clientWith({ timeout: 60_000 });
    const end = new AbortController();
    const closed = new Promise<void>((settle) => {
      server.respond = (_request, response) => {
        response.on('close', settle);
      };
    });
    const responses = [unhurried.get('/dtt', end.signal), unhurried.post('/dtt', {}, end.signal)];
    const outcomes = Promise.allSettled(responses);
    await expect.poll(() => server.requests, { interval: 5 }).toHaveLength(2);
    end.abort();
    await closed;
    const aborted = { status: 'rejected', reason: { name: 'AbortError' } };
    expect(await outcomes).toMatchObject([aborted, aborted]);
  });
});

describe('an error of an upstream', () => {
  const rejection = (status: number, said?: string) =>
    new UpstreamRejection('no', { failure: 'no', status }, said);

  const other = Object.assign(new UpstreamError('Invalid ID, not found', { failure: 'no' }), {
    ...{ status: 403, said: 'Forbidden' },
  });
  it.each([
    // The error, whether the record is missing, whether the operation is not offered, and whether it is forbidden.
    [rejection(404, 'gone'), true, true, false],
    [rejection(404), false, true, false],
    [rejection(400, 'DTT device Not Found'), true, false, false],
    [rejection(400, 'Invalid ID'), false, true, false],
    [rejection(400), false, false, false],
    [rejection(403, 'Forbidden'), false, true, true],
    [rejection(403), false, false, false],
    [rejection(405), false, true, false],
    [rejection(501, 'Not implemented'), false, true, false],
    [other, false, false, false],
  ])('says whether the record is missing, or the operation: %o', (error, missing, absent, forbidden) => {
    expect([isMissing(error), isNotOffered(error), isForbidden(error)]).toEqual([missing, absent, forbidden]);
  });
});

describe('the pages of a list', () => {
  /** Serves a list of ids, which may change after each request. */
  function serve(
    ids: (number | undefined)[],
    {
      change = (_request: number): unknown => undefined,
      most = 100,
      isBare = false,
      paginationOf = (limit: number, offset: number): unknown => ({ limit, offset }),
    } = {},
  ) {
    server.respond = (request, response) => {
      const query = new URL(request.url ?? '', server.base).searchParams;
      const offset = Number(query.get('offset'));
      const limit = Math.min(most, Number(query.get('limit')));
      const data = ids.slice(offset, offset + limit).map((id) => ({ id }));
      const page = { data, pagination: paginationOf(limit, offset) };
      reply(response, 200, { ok: true, data: isBare ? data : page });
      change(server.requests.length);
    };
  }

  async function readIds(isPaged?: boolean): Promise<number[]> {
    const ids: number[] = [];
    for await (const { items } of readPages(upstream, '/dtt', undefined, isPaged))
      ids.push(...items.map(({ id }) => id ?? 0));
    return ids;
  }

  const upTo = (count: number) => Array.from({ length: count }, (_, index) => count - index);

  it.each([0, 1, 19, 20, 21, 39, 99, 100, 101, 199, 200, 250])(
    'are read to the end, each record once, whatever the limit and the form of each: %i records',
    async (count) => {
      for (const most of [100, 20]) {
        serve(upTo(count), { most });
        expect(await readIds()).toEqual(upTo(count));
      }
      for (const pagination of [undefined, null, {}, { limit: 0 }, { limit: 'all' }, { limit: 500 }]) {
        serve(upTo(count), { paginationOf: () => pagination });
        expect(await readIds()).toEqual(upTo(count));
      }
      serve(upTo(count), { isBare: true });
      expect(await readIds()).toEqual(upTo(count));
    },
  );

  it.each([
    [99, 1],
    [97, 3],
    [100, 1],
  ])('are read to the end if ids are missing at %i and %i more', async (start, count) => {
    const ids: (number | undefined)[] = upTo(250);
    ids.splice(start, count, ...Array.from({ length: count }, () => undefined));
    serve(ids);
    expect(await readIds()).toEqual(ids.map((id) => id ?? 0));
    expect(server.requests).toHaveLength(3);
  });

  it('lack no record when others are added while they are read', async () => {
    const growing = upTo(400);
    serve(growing, { change: () => growing.unshift(growing.length + 1) });
    expect(await readIds()).toEqual(expect.arrayContaining(upTo(400)));
  });

  it('fail when the list shrinks meanwhile, repeats itself, or has no ids', async () => {
    const ids = upTo(1000);
    // Only once: a list that shrinks on and on ends too early.
    serve(ids, { change: () => ids.splice(0, ids.length - 999) });
    await expect(readIds()).rejects.toThrow('GET /dtt: the list has changed while it was read');
    const data = upTo(100).map((id) => ({ id }));
    respondWith({ status: 200, body: { ok: true, data: { data, pagination: { limit: 100, offset: 0 } } } });
    await expect(readIds()).rejects.toThrow('GET /dtt: the list repeats itself');
    serve(Array.from({ length: 150 }, () => undefined));
    await expect(readIds()).rejects.toThrow('GET /dtt: the list repeats itself at offset 0');
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

  it('fail when the response is no list, longer than was requested, or null', async () => {
    const message = 'UpstreamError: GET /dtt: the response is not a list of at most 100';
    const error = [message, failureOf('responded with what cannot be understood')];
    for (const data of [{ data: 'x' }, { data: upTo(101).map((id) => ({ id })) }, null]) {
      respondWith({ status: 200, body: { ok: true, data } });
      expect(await errorOf(readIds())).toEqual(error);
    }
  });
});
