/** How requests are sent to an upstream, and how its responses are read. */

import { setTimeout as sleep } from 'node:timers/promises';
import pLimit from 'p-limit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createBudget } from '../../../../src/extensions/upstream/client/budget.ts';
import {
  createUpstream,
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

let server: Scripted;
let upstream: Upstream;

beforeEach(async () => {
  server = await openScripted();
  upstream = clientWith({});
});
afterEach(() => server?.close());

const clientWith = (timing: Partial<Timing>, more: Partial<UpstreamOptions> = {}) =>
  createUpstream({ base: server.base, token, timing: { ...shortTiming, ...timing }, ...more });

/** Responds to each request with the next of these, and with the last one from then on. */
function respondWith(...responses: { status: number; body?: unknown; headers?: Record<string, string> }[]) {
  server.respond = (_request, response) => {
    const scripted = responses.length > 1 ? responses.shift() : responses[0];
    return reply(response, scripted?.status ?? 200, scripted?.body ?? good, scripted?.headers);
  };
}

describe('the client of an upstream', () => {
  it('sends the token, asks for JSON, sends a body as JSON, and returns the data of the envelope', async () => {
    const sent: unknown[] = [];
    server.respond = ({ method, headers }, response) => {
      sent.push([method, headers.accept, headers['content-type'], headers['content-length']]);
      return reply(response, 200, good);
    };
    expect(await upstream.get('/dtt')).toBe('good');
    expect(await upstream.post('/dtt/templates/1', { isActive: true })).toBe('good');
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual(
      Array(2).fill(`Bearer ${token}`),
    );
    expect(sent).toEqual([
      ['GET', 'application/json', undefined, undefined],
      ['POST', 'application/json', 'application/json', '17'],
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

  it.each([
    { status: 408 },
    { status: 429 },
    { status: 500 },
    { status: 503 },
    { status: 200, body: '<html>' },
    { status: 200, body: '{"ok":true,"data":' },
    { status: 200, body: '[1,2]' },
  ])('retries a request after %j', async (scripted) => {
    respondWith(scripted, scripted, { status: 200 });
    expect(await upstream.get('/dtt')).toBe('good');
    expect(server.requests).toHaveLength(3);
    expect(upstream.requestCount()).toBe(3);
  });

  it('gives up after so many retries, with a message that says what happened', async () => {
    respondWith({ status: 503 });
    await expect(upstream.get('/dtt')).rejects.toThrow('GET /dtt: it responded with 503');
    expect(server.requests).toHaveLength(shortTiming.retries + 1);
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

  it.each([301, 302, 303, 307, 308])(
    'follows no redirect, which could send the token elsewhere or repeat a write: %i',
    async (status) => {
      respondWith({ status, headers: { Location: '/api/v1/elsewhere?a' } });
      const message = `it redirects to "${new URL(server.base).origin}/api/v1/elsewhere", which is not followed`;
      await expect(upstream.get('/dtt')).rejects.toThrow(message);
      await expect(upstream.post('/dtt', {})).rejects.toThrow(message);
      expect(server.requests).toHaveLength(2);
    },
  );

  it.each(['127.0.0.1', 'localhost'])('gives up if the connection is refused, at %s', async (host) => {
    server.close();
    const base = server.base.replace('127.0.0.1', host);
    const posting = clientWith({}, { base }).post('/dtt', {});
    const error = await posting.catch((caught: unknown) => caught);
    expect(String(error)).toMatch(/POST \/dtt: connect ECONNREFUSED \S+$/);
    // Nothing was sent.
    expect(error).toMatchObject({ name: 'Unavailable', mayHaveActed: false });
  });

  it('gives up if the upstream hangs before its response or in the middle of it', async () => {
    const misbehaviours: Scripted['respond'][] = [
      () => {},
      (_request, response) => response.writeHead(200).write('{"ok"'),
    ];
    for (const respond of misbehaviours) {
      server.respond = respond;
      const message = 'no response within 0.05 s';
      const error = expect.objectContaining({ message: `POST /dtt: ${message}`, mayHaveActed: true });
      await expect(clientWith({ timeout: 50 }).post('/dtt', {})).rejects.toEqual(error);
    }
  });

  it('waits as long as Retry-After says before it sends any request', async () => {
    respondWith({ status: 429, headers: { 'Retry-After': '1' } }, { status: 200 });
    const start = Date.now();
    // The longest pause that the client accepts is exactly as long as Retry-After.
    const client = clientWith({ longestPause: 1_000 });
    const first = client.get('/dtt');
    await sleep(200);
    await Promise.all([first, client.get('/ossm')]);
    expect(Date.now() - start).toBeGreaterThanOrEqual(990);
  });

  it('reads Retry-After in seconds and as a date, and takes an hour for more', () => {
    const date = (milliseconds: number) => new Date(Date.now() + milliseconds).toUTCString();
    expect(['2', '0', '-1', 'soon', null].map(readRetryAfter)).toEqual([2_000, 0, 0, 0, 0]);
    expect(readRetryAfter(date(60_000))).toBeGreaterThan(58_000);
    expect(readRetryAfter(date(-60_000))).toBe(0);
    for (const longer of ['9'.repeat(20), '9'.repeat(400), 'Fri, 31 Dec 9999 23:59:59 GMT'])
      expect(readRetryAfter(longer)).toBe(3_600_000);
  });

  it('gives up if Retry-After is longer than its longest pause', async () => {
    for (const [status, mayHaveActed] of [[429, false] as const, [503, true] as const]) {
      respondWith({ status, headers: { 'Retry-After': '3600' } });
      const message = 'GET /dtt: it asks to wait for 3600 s. Gave up: try again then.';
      await expect(clientWith({}).get('/dtt')).rejects.toMatchObject({ message, mayHaveActed });
    }
    expect(server.requests).toHaveLength(2);
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
    await expect(upstream.get('/dtt')).rejects.toThrow('GET /dtt: the response is larger than 4 MiB');
    expect(sent).toBeLessThan(32 * 1024 * 1024);
  });

  it('quotes a rejection shortened, without the token and without control characters', async () => {
    respondWith({ status: 403, body: { ok: false, error: `No \u001b[31m${token}\n${'x'.repeat(1000)}` } });
    const error = await upstream.get('/dtt').catch((caught: unknown) => caught);
    if (!(error instanceof UpstreamRejection)) throw error;
    expect(error.message).toMatch(/^GET \/dtt: it responded with 403 "No {2}\[31m\*\*\* x+"$/);
    expect(error.message.length).toBeLessThan(300);
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
    expect(await outcomes).toMatchObject([
      { status: 'rejected', reason: { name: 'AbortError' } },
      { status: 'rejected', reason: { name: 'AbortError' } },
    ]);
  });
});

describe('an error of an upstream', () => {
  const rejection = (status: number, said?: string) =>
    new UpstreamRejection('no', { failure: 'no', status }, said);

  const other = new UpstreamError('Invalid ID, not found', { failure: 'no' });
  it.each([
    // The error, whether the record is missing, and whether the operation is not offered.
    [rejection(404, 'gone'), true, true],
    [rejection(404), false, true],
    [rejection(400, 'DTT device not found'), true, false],
    [rejection(400, 'Invalid ID'), false, true],
    [rejection(400), false, false],
    [rejection(403, 'Forbidden'), false, true],
    [rejection(403), false, false],
    [rejection(405), false, true],
    [rejection(501, 'Not implemented'), false, true],
    [other, false, false],
  ])('says whether the record is missing, or the operation: %o', (error, missing, absent) => {
    expect([isMissing(error), isNotOffered(error)]).toEqual([missing, absent]);
  });
});

describe('the pages of a list', () => {
  /** Serves a list of ids, which may change after each request. */
  function serve(
    ids: (number | undefined)[],
    {
      change = (_request: number): unknown => undefined,
      most = 100,
      paginationOf = (limit: number, offset: number): unknown => ({ limit, offset }),
    } = {},
  ) {
    server.respond = (request, response) => {
      const query = new URL(request.url ?? '', server.base).searchParams;
      const offset = Number(query.get('offset'));
      const limit = Math.min(most, Number(query.get('limit')));
      const data = ids.slice(offset, offset + limit).map((id) => ({ id }));
      reply(response, 200, { ok: true, data: { data, pagination: paginationOf(limit, offset) } });
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
      server.respond = (request, response) => {
        const offset = Number(new URL(request.url ?? '', server.base).searchParams.get('offset'));
        const data = upTo(count).slice(offset, offset + 100);
        return reply(response, 200, { ok: true, data: data.map((id) => ({ id })) });
      };
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
    serve(ids, { change: () => ids.shift() });
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

  it.each([
    ['no list', { data: 'x' }],
    ['longer than was requested', { data: upTo(101).map((id) => ({ id })) }],
    ['null', null],
  ])('fail when the response is %s', async (_name, data) => {
    respondWith({ status: 200, body: { ok: true, data } });
    await expect(readIds()).rejects.toThrow('GET /dtt: the response is not a list of at most 100');
  });
});
