/** REST in front of an upstream: what is forwarded, what comes back, and what is sent from the cache. */

import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { openProxied, type ProxiedOptions } from './proxied.ts';

let proxied: Awaited<ReturnType<typeof openProxied>>;
type Ask = (typeof proxied)['ask'];
const open = async (options?: ProxiedOptions) => {
  proxied = await openProxied(options);
  return proxied;
};
afterEach(() => proxied?.close());

/** An upstream that responds with these headers, and numbers its responses. */
function numbered(headers: Record<string, string> = {}, status = 200, more = '') {
  let number = 0;
  proxied.upstream.respond = (_request, response) =>
    response.writeHead(status, headers).end(`response ${++number}${more}`);
}

/** These headers with their names in lower case, as they arrive. */
const lowered = (headers: Record<string, string>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));

/** The body of an error of the gateway. */
const errorOf = (error: string) => JSON.stringify({ ok: false, error });

/** What the clock shows: it stands still, so that nothing gets older on a slow machine. */
let now: number;
const advance = (seconds: number) => {
  now += seconds * 1_000;
};
beforeEach(() => {
  // Whole, so that sums of it are exact.
  now = Math.floor(performance.now());
  vi.spyOn(performance, 'now').mockImplementation(() => now);
});

/** Headers that each have their own name as their value. */
const named = (names: string) => Object.fromEntries(names.split(' ').map((name) => [name, name]));

describe('what is forwarded', () => {
  it('has the token of the account, and the headers and the body of the client, whatever they are named', async () => {
    const { ask, requests } = await open();
    const headers = { constructor: 'a', 'Content-Type': 'text/odd', 'X-Own': ['mine', 'too'] };
    await ask('/x?b=1&a=%32/../c', headers, { method: 'PATCH', body: 'é' });
    expect(requests).toEqual([
      {
        method: 'PATCH',
        target: '/api/v1/x?b=1&a=%32/../c',
        body: 'é',
        headers: {
          constructor: 'a',
          'content-type': 'text/odd',
          'x-own': 'mine, too',
          authorization: 'Bearer token of alice',
          'content-length': '2',
          host: expect.any(String),
          connection: 'keep-alive',
        },
      },
    ]);
  });

  it('has nothing about the address of the client, its connection, its way here and its other credentials', async () => {
    const { ask, requests } = await open();
    const kept = named('x-te te-x x-host cookies x-proxy-a my-forwarded viable my-via a-sec-b');
    const dropped = {
      ...named('Keep-Alive Proxy-Authorization TE Trailer Upgrade Cookie Origin Referer Dovetail-Position'),
      ...named('X-Forwarded-For Forwarded X-Request-Id X-Real-IP X-Client-IP X-Cluster-Client-IP Via X-Hop'),
      ...named('X-Other-Hop True-Client-IP CF-Connecting-IP Fastly-Client-IP Sec-Fetch-Site'),
      ...{ Connection: 'Keep-Alive,X-HOP , x-other-hop', Expect: '100-continue' },
      'Transfer-Encoding': 'chunked',
    };
    await ask('/x', { ...kept, ...dropped }, { body: 'none' });
    const own = { authorization: 'Bearer token of alice', connection: 'keep-alive', host: expect.anything() };
    expect(requests).toMatchObject([{ body: '' }]);
    expect(requests[0]?.headers).toEqual({ ...kept, ...own });
  });

  it('is every path below the base, and a response to events that is no stream if the client accepts that', async () => {
    const { ask, requests } = await open();
    const paths = ['/a..', '/..a', '/.a;b', '/x?/../'];
    for (const path of paths) await ask(path, { Accept: 'application/json, text/event-stream', ...reader });
    expect(requests.map(({ target }) => target)).toEqual(paths.map((path) => `/api/v1${path}`));
  });

  const reader = { Authorization: 'Bearer own reader of alice' };
  const upwards =
    '/..%2fusers /a/../../users /%2e%2e/%2E./b /a\\..\\b /dtt/..;/x /..;a=1/b /.. /a/. /a%5c.. /a#b';
  const noEvents = 'REST cannot be followed in front of another service; use a subscription of GraphQL';
  const needed = 'Forbidden: this needs a token with the scope activate';
  const noToken =
    'The account cannot be reached upstream without a token of the upstream; nothing was changed here';
  const methods = 'GET, HEAD, POST, PUT, PATCH, DELETE';
  const tooLong = { method: 'PUT', body: 'x'.repeat(65_537) };
  type Refused = [path: string, Record<string, string>, Parameters<Ask>[2], number, string, object?];
  it.each<Refused>([
    ...upwards.split(' ').map((path): Refused => [path, {}, {}, 404, 'Not found']),
    ['/x', { Accept: 'text/event-stream' }, {}, 406, noEvents],
    ['/x', {}, { method: 'OPTIONS' }, 405, 'Method not allowed', { allow: methods }],
    ['/x', {}, tooLong, 413, 'Request body too large', { connection: 'close' }],
    ['/x', { Authorization: 'Bearer carol' }, {}, 503, noToken, { 'retry-after': '5' }],
    ...['POST', 'PUT', 'PATCH', 'DELETE'].map((method): Refused => ['/x', reader, { method }, 403, needed]),
    ['/x', { ...reader, 'X-HTTP-Method-Override': 'DELETE' }, {}, 403, needed],
    // It may only read by now.
    ['/x', { Authorization: 'Bearer own narrowed of alice' }, { method: 'PATCH' }, 403, needed],
    ['/x', { Authorization: 'Bearer own ended of alice' }, {}, 401, 'Unauthorized'],
  ])('is not %s with %j and %j', async (path, headers, how, status, error, more = {}) => {
    const { ask, requests } = await open();
    const given = await ask(path, headers, how);
    expect(given).toMatchObject({ status, body: errorOf(error) });
    expect(Object.fromEntries(given.headers)).toMatchObject(more);
    expect(requests).toEqual([]);
  });
});

describe('what comes back', () => {
  it('is the status, the headers and the bytes of the upstream, with the id of the request alone', async () => {
    const { ask, handled } = await open();
    const sent = {
      ...named('x-server server-timing set-cookie2 nel-x x-request-id-of a-sec-b my-ratelimit'),
      'Content-Type': 'text/odd',
      'Cache-Control': 'Public, Max-Age=3600',
      'X-Odd': 'theirs',
      'X-Content-Type-Options': 'theirs',
      Date: 'Tue, 17 Feb 2026 12:00:00 GMT',
    };
    const dropped = {
      ...named('X-Hop Set-Cookie Server X-Request-Id Strict-Transport-Security Alt-Svc NEL Sec-X Report-To'),
      ...named('Access-Control-Allow-Origin Reporting-Endpoints Proxy-Status'),
      Connection: 'keep-alive, X-Hop',
    };
    const bytes = Buffer.from([0xff, 0, 0x7b]);
    proxied.upstream.respond = (_request, response) =>
      response.writeHead(418, { ...sent, ...dropped, Vary: 'X-Odd' }).end(bytes);
    const { status, headers } = await ask('/x');
    expect(status).toBe(418);
    expect(Object.fromEntries(headers)).toEqual({
      ...lowered(sent),
      vary: 'X-Odd, Origin',
      'x-request-id': expect.stringMatching(/^[\da-f-]{36}$/),
      ratelimit: '"token";r=9;t=60',
      'content-length': '3',
      connection: 'keep-alive',
      'keep-alive': expect.anything(),
    });
    expect(handled()).toEqual([['forwarded', 'miss']]);
  });

  it('has the rate limits of the upstream if it states any, and not those of the gateway', async () => {
    const { ask } = await open();
    for (const name of ['X-RateLimit-Remaining', 'RateLimit-Limit']) {
      numbered({ [name]: '7' });
      const { headers } = await ask(`/${name}`);
      expect([headers.get(name), headers.get('RateLimit')]).toEqual(['7', null]);
    }
  });

  it('has no length if it has no body either, but for what a HEAD is told of the GET', async () => {
    const { ask } = await open();
    numbered({ 'Content-Length': '5', ETag: '"v1"' }, 304);
    const { status, headers } = await ask('/x', { Range: 'bytes=0-1', 'If-None-Match': '"v1"' });
    expect([status, headers.get('Content-Length'), headers.get('ETag')]).toEqual([304, null, '"v1"']);
    numbered({ 'Content-Length': '5' });
    expect((await ask('/x', {}, { method: 'HEAD' })).headers.get('Content-Length')).toBe('5');
    expect(proxied.requests.at(-1)?.headers).not.toHaveProperty('content-length');
  });

  it.each([
    ['refuses the connection', 502, 0, 'The upstream cannot be reached'],
    ['closes the connection', 502, 1, 'The upstream cannot be reached'],
    ['closes a connection that was idle', 502, 1, 'The upstream cannot be reached'],
    ['does not respond in time', 504, 1, 'The upstream did not respond in time'],
    ['has no valid status', 502, 1, 'The upstream cannot be reached'],
    ['responds with 5 MiB', 502, 1, 'The response of the upstream is larger than 4 MiB'],
  ])(
    'is an error if the upstream %s, and the gateways are told of a write that may have been done, which is not repeated',
    async (what, status, told, message) => {
      const { ask, requests, written, upstream } = await open({
        longest: what === 'does not respond in time' ? 300 : 20_000,
      });
      if (what === 'closes a connection that was idle') await ask('/x');
      proxied.upstream.respond = (_request, response) => {
        if (what.startsWith('closes')) response.destroy();
        if (what === 'has no valid status')
          response.socket?.write('HTTP/1.1 000 Odd\r\nContent-Length: 0\r\n\r\n');
        if (what === 'responds with 5 MiB') response.end(Buffer.alloc(5 * 1024 * 1024));
      };
      if (what === 'refuses the connection') await upstream.refuse();
      const response = await ask('/x', {}, { method: 'POST', body: '{}' });
      expect(response).toMatchObject({ status, body: errorOf(message) });
      expect(written).toHaveLength(told);
      expect(requests.filter(({ method }) => method === 'POST')).toHaveLength(told);
    },
  );

  it('tells the gateways of each write but those that were rejected', async () => {
    const { ask, written } = await open();
    for (const status of [200, 302, 400, 404, 500]) {
      proxied.upstream.respond = (_request, response) => response.writeHead(status).end();
      await ask(`/x/${status}`, {}, { method: 'DELETE' });
    }
    expect(written).toEqual(['/x/200', '/x/302', '/x/500']);
  });

  it('is a 401 only if it is about the token of the client', async () => {
    const { ask, rejected, written } = await open();
    numbered({}, 401);
    expect(await ask('/x')).toMatchObject({ status: 401, body: 'response 1' });
    const own = { Authorization: 'Bearer own of alice' };
    const message = 'The upstream rejected the request or sent what cannot be read; nothing was changed here';
    for (const method of ['GET', 'POST'])
      expect(await ask('/x', own, { method })).toMatchObject({ status: 502, body: errorOf(message) });
    // Nothing was written.
    expect([rejected, written]).toEqual([[1, 1, 1], []]);
  });

  it('has the gateway wait as long as the upstream asks for by a 429, and not by a 503, which may be about one path', async () => {
    const { ask, budget } = await open({ rate: 60 });
    numbered({ 'Retry-After': '3600' }, 503);
    await ask('/x');
    expect(budget(1).delayFor(1)).toBe(0);
    numbered({ 'Retry-After': '30' }, 429);
    expect((await ask('/x')).headers.get('Retry-After')).toBe('30');
    expect([budget(1).delayFor(1), budget(2).delayFor(1), budget(2).available()]).toEqual([30_000, 0, 60]);
    advance(30);
    expect(budget(1).available()).toBe(58);
  });
});

interface Case {
  /** The headers of the response, and its status. */
  readonly response?: Record<string, string>;
  readonly status?: number;
  /** The headers of the first request, and of the second, which comes so many seconds later. */
  readonly first?: Record<string, string>;
  readonly second?: Record<string, string>;
  readonly later?: number;
}

const control = (directives: string) => ({ 'Cache-Control': directives });
const second = { Authorization: 'Bearer second of alice' };
const modified = 'Mon, 01 Jan 2024 00:00:00 GMT';
const justAfter = 'Mon, 01 Jan 2024 00:00:01 GMT';
const brief = { Date: modified, Expires: justAfter };
const pragma = { Pragma: 'No-Cache' };
const german = { 'Accept-Language': 'de' };
const varying = { Vary: 'X-Odd , Accept-Language' };
const coded = { 'Content-Encoding': 'odd' };
const ofField = 'private="x, max-age=600"';
const dated = { 'Last-Modified': modified };
const since = { 'If-Modified-Since': modified };

/** Which response a second request gets: that to the first, or another. */
const cases: readonly (readonly [name: string, isStored: boolean, Case])[] = [
  ['without caching headers, within the lifetime', true, { later: 59.5 }],
  ['without caching headers, after the lifetime', false, { later: 61 }],
  ['that is a 404', true, { status: 404 }],
  ['that is a 403', false, { status: 403 }],
  ['that is a redirect', false, { status: 301 }],
  ['with max-age, before it', true, { response: control('Max-Age=300'), later: 299 }],
  ['with max-age, after it', false, { response: control('max-age=10'), later: 11 }],
  ['with max-age in quotes', true, { response: control('max-age="300"'), later: 299 }],
  ['with max-age beside Pragma', true, { response: { ...control('max-age=99'), ...pragma }, later: 98 }],
  ['with max-age and an age', false, { response: { ...control('max-age=10'), Age: '9' }, later: 2 }],
  ['that is private', true, { response: control('private'), later: 59 }],
  ['with no-store', false, { response: control('no-store') }],
  ['with NO-CACHE', false, { response: control('NO-CACHE') }],
  ['with Pragma', false, { response: pragma }],
  ['with Pragma beside another', false, { response: { ...control('private'), ...pragma, ...dated } }],
  ['that has expired', false, { response: { Expires: '0' } }],
  ['that has expired, immutable', false, { response: { ...control('immutable'), ...brief }, later: 2 }],
  ['to a client that wants no-cache', false, { second: control('No-Cache') }],
  ['to a client that says Pragma', false, { second: pragma }],
  ['to a client that wants it younger', false, { second: control('max-age=5'), later: 7 }],
  ['to a client that takes it as old', true, { second: control('max-age=9'), later: 7 }],
  ['of a client that wants it not stored', false, { first: control('no-store') }],
  ['that varies, to an equal request', true, { response: varying, first: german, second: german }],
  ['that varies, to another', false, { response: varying, second: german }],
  ['that varies by all', false, { response: { Vary: '*' } }],
  ['to another token of the account', false, { second }],
  ['to another account', false, { second: { Authorization: 'Bearer bob' } }],
  ['to a request for a part', false, { second: { Range: 'bytes=0-1' } }],
  ['to a request for its version', false, { second: { 'If-Match': '"v1"' } }],
  ['to a request for what is as old', false, { second: { 'If-Unmodified-Since': modified } }],
  ['with a coding, to one without', false, { response: coded, first: { 'Accept-Encoding': 'odd' } }],
  ['with the name of a field that is like a directive', false, { response: control(ofField), later: 61 }],
  ['with directives that look so', true, { response: control('x-max-age=0, max-ages=0'), later: 59 }],
];

describe('a stored response', () => {
  it.each(cases)('%s is sent again: %s', async (_, isStored, { response, status, first, second, later }) => {
    const { ask } = await open();
    numbered(response, status);
    expect((await ask('/x', first)).body).toBe('response 1');
    if (later) advance(later);
    const { body, headers } = await ask('/x', second);
    expect(body).toBe(isStored ? 'response 1' : 'response 2');
    if (isStored) expect(headers.get('Age')).toBe(String(Math.floor(later ?? 0)));
  });

  it('is sent to HEAD without its body, and a HEAD is not stored', async () => {
    const { ask, requests } = await open();
    numbered({ 'X-Odd': '1' });
    await ask('/y', {}, { method: 'HEAD' });
    expect((await ask('/y')).body).toBe('response 2');
    const { headers, body } = await ask('/y', {}, { method: 'HEAD' });
    expect([headers.get('X-Odd'), headers.get('Content-Length'), body]).toEqual(['1', '10', '']);
    expect(requests).toHaveLength(2);
  });

  it('is as old as the time that it took', async () => {
    const { ask } = await open();
    proxied.upstream.respond = (_request, response) => {
      advance(3);
      response.end('late');
    };
    await ask('/x');
    numbered();
    expect((await ask('/x')).headers.get('Age')).toBe('3');
    expect((await ask('/x', { 'Cache-Control': 'max-age=2' })).headers.get('Age')).toBeNull();
  });

  it.each<[string, Record<string, string>, Record<string, string>, number, number?]>([
    ['its tag', { ETag: '"vW/1"' }, { 'If-None-Match': '"v0", W/"vW/1"' }, 304],
    ['its tag, which is weak', { ETag: 'W/"v1"' }, { 'If-None-Match': '"v1"' }, 304],
    ['another tag', { ETag: '"v1"' }, { 'If-None-Match': '"v0"' }, 200],
    ['another tag, though its time', { ETag: '"v1"', ...dated }, { 'If-None-Match': '"v0"', ...since }, 200],
    ['its time', dated, since, 304],
    ['a later time', dated, { 'If-Modified-Since': justAfter }, 304],
    ['an earlier time', dated, { 'If-Modified-Since': 'Sun, 31 Dec 2023 23:59:59 GMT' }, 200],
    ['a tag where it has none', {}, { 'If-None-Match': '"v1"' }, 200],
    ['a time where it has none', {}, since, 200],
    ['the tag of what is gone', { ETag: '"v1"' }, { 'If-None-Match': '"v1"' }, 404, 404],
  ])(
    'is what a client with %s is told to have, the first time and later',
    async (_, response, condition, status, given = 200) => {
      const { ask, requests, handled } = await open();
      numbered({ 'Content-Type': 'text/odd', 'X-Odd': 'theirs', ...response }, given);
      const isHad = status === 304;
      for (const time of [1, 2]) {
        const { headers, ...rest } = await ask('/x', condition);
        expect(rest).toEqual({ status, body: isHad ? '' : 'response 1' });
        expect(Object.fromEntries(headers)).toMatchObject({
          ...lowered(response),
          ...{ 'x-odd': 'theirs', vary: 'Origin', ratelimit: expect.anything() },
        });
        const seen = ['content-type', 'content-length', 'age'].map((name) => headers.get(name));
        expect(seen).toEqual([...(isHad ? [null, null] : ['text/odd', '10']), time === 1 ? null : '0']);
      }
      expect([requests.length, requests[0]?.headers]).toEqual([
        1,
        expect.not.objectContaining(lowered(condition)),
      ]);
      expect(handled()).toEqual([
        ['forwarded', 'miss'],
        ['forwarded', 'hit'],
      ]);
    },
  );

  it('is dropped by a write of the account, also by another gateway or as a read that asks for another method, and by no other write', async () => {
    const { ask, feed } = await open();
    numbered();
    const read = async () => (await ask('/x')).body;
    expect(await read()).toBe('response 1');
    await ask('/y', { Authorization: 'Bearer bob' }, { method: 'POST' });
    feed.announce(2, 'User');
    feed.announce(1, 'DttDevice');
    expect(await read()).toBe('response 1');
    await ask('/y', {}, { method: 'POST' });
    expect(await read()).toBe('response 4');
    feed.announce(1, 'User');
    expect(await read()).toBe('response 5');
    feed.announceAll();
    expect(await read()).toBe('response 6');
    for (const [index, name] of ['X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override'].entries()) {
      await ask('/y', { [name]: 'DELETE' });
      expect(await read()).toBe(`response ${8 + 2 * index}`);
    }
  });

  it('is not sent while announcements are not heard, or not in time', async () => {
    let hasCaughtUp = true;
    let catchUp = async () => hasCaughtUp;
    const { ask, feed } = await open({ catchUp: () => catchUp() });
    numbered();
    await ask('/x');
    expect((await ask('/x')).body).toBe('response 1');
    feed.falter();
    expect((await ask('/x')).body).toBe('response 2');
    feed.falter(true);
    expect((await ask('/x')).body).toBe('response 1');
    hasCaughtUp = false;
    expect((await ask('/x')).body).toBe('response 3');
    catchUp = async () => {
      feed.falter();
      return true;
    };
    expect((await ask('/x')).body).toBe('response 4');
    feed.falter(true);
    catchUp = () => new Promise(() => {});
    expect((await ask('/x')).body).toBe('response 5');
  });

  it('is forgotten once the upstream has given one that must not be stored', async () => {
    const { ask } = await open();
    numbered();
    await ask('/x');
    numbered(control('no-store'), 200, ' anew');
    for (const headers of [control('no-cache'), {}]) await ask('/x', headers);
    expect((await ask('/x')).body).toBe('response 3 anew');
  });

  it('is not stored if a write came while it was under way', async () => {
    const { ask } = await open();
    let release = () => {};
    proxied.upstream.respond = (_request, response) => {
      release = () => response.end('old');
    };
    const reading = ask('/x');
    await expect.poll(() => proxied.requests).toHaveLength(1);
    const end = release;
    numbered();
    await ask('/x', {}, { method: 'POST' });
    end();
    expect((await reading).body).toBe('old');
    expect((await ask('/x')).body).toBe('response 2');
  });

  it('is shared by equal reads that come while it is under way, but for those that want a new one', async () => {
    const { ask, requests } = await open();
    const ends: (() => void)[] = [];
    proxied.upstream.respond = (_request, response) => {
      const mine = ends.push(() => response.end(`response ${mine}`));
    };
    const anew = [control('no-cache'), control('no-cache'), pragma, pragma];
    const reads = [{}, {}, german, ...anew, second, { Authorization: 'Bearer bob' }];
    const numbers = [1, 1, 2, 3, 4, 5, 6, 7, 8];
    const responses: ReturnType<typeof ask>[] = [];
    for (const [index, headers] of reads.entries()) {
      responses.push(ask('/x', headers as Record<string, string>));
      await expect.poll(() => requests.length, { interval: 5 }).toBe(numbers[index]);
    }
    for (const end of ends) end();
    const bodies = (await Promise.all(responses)).map(({ body }) => body);
    expect(bodies).toEqual(numbers.map((number) => `response ${number}`));
    expect(requests).toHaveLength(8);
  });
});

describe('while the upstream is away or busy', () => {
  const troubles = ['away', 429, 500, 503] as const;
  const fail = (trouble: (typeof troubles)[number]) => {
    proxied.upstream.respond = (_request, response) =>
      trouble === 'away' ? void response.destroy() : void response.writeHead(trouble).end('trouble');
  };

  it.each(troubles)('%s: what is stored is sent for up to an hour after its lifetime', async (trouble) => {
    const { ask } = await open();
    numbered();
    await ask('/x');
    fail(trouble);
    advance(60 + 3_590);
    for (const _time of [1, 2]) {
      const { status, headers, body } = await ask('/x');
      expect([status, headers.get('Age'), body]).toEqual([200, '3650', 'response 1']);
    }
    advance(20);
    expect((await ask('/x')).status).toBe(trouble === 'away' ? 502 : trouble);
  });

  it.each<[string, Record<string, string>, Record<string, string>]>([
    ['a client that wants no-cache', {}, { 'Cache-Control': 'no-cache' }],
    ['a client that wants it younger', {}, { 'Cache-Control': 'max-age=61' }],
    ['a response that must be revalidated', control('must-revalidate'), {}],
    ['a response with Pragma', { Pragma: 'no-cache' }, {}],
    ['a response with no-cache', control('no-cache'), {}],
    ['a response with no-cache among others', control('private , no-cache ,x'), {}],
    ['a response with no-cache for fields', control('No-Cache="a, b"'), {}],
  ])('%s gets the error', async (_, response, request) => {
    const { ask } = await open();
    numbered(response);
    await ask('/x');
    fail(500);
    advance(62);
    expect((await ask('/x', request)).body).toBe('trouble');
  });

  it('what is stored is sent in spite of directives that only look like no-cache, and not after a write', async () => {
    const { ask, requests, feed } = await open();
    numbered(control('no-caches, x-no-cache'));
    await ask('/x');
    fail(500);
    advance(62);
    expect((await ask('/x', { Pragma: 'caches' })).body).toBe('response 1');
    proxied.upstream.respond = (_request, response) => {
      feed.announce(1, 'User');
      response.writeHead(500).end('trouble');
    };
    expect((await ask('/x')).body).toBe('trouble');
    expect(requests).toHaveLength(3);
  });

  it('what is stored is sent without asking the upstream if the budget of the account is spent', async () => {
    const { ask, requests, budget } = await open({ rate: 60 });
    numbered();
    await ask('/x');
    advance(61);
    budget(1).pauseFor(30_000);
    expect((await ask('/x')).body).toBe('response 1');
    expect((await ask('/y')).body).toBe('response 2');
    expect(requests).toHaveLength(2);
  });
});

describe.each([
  ['reads', 'GET', 'POST'],
  ['writes', 'POST', 'GET'],
])('of the %s of an account', (_, method, other) => {
  it('16 are in flight, 200 more wait, those behind get a 503, and requests of the other kind do not wait', async () => {
    const { ask, requests, written } = await open({ longest: 60_000, longestWait: 60_000 });
    const held: ServerResponse[] = [];
    proxied.upstream.respond = (request, response) =>
      void (request.method === method ? held.push(response) : response.end('at once'));
    const responses: Awaited<ReturnType<Ask>>[] = [];
    const all = Array.from({ length: 220 }, async (_each, index) => {
      responses.push(await ask(`/${index}`, {}, { method }));
    });
    await expect.poll(() => responses).toHaveLength(4);
    const rejected = responses.map(({ status, headers, body }) => [status, headers.get('Retry-After'), body]);
    expect(rejected).toEqual(Array(4).fill([503, '1', errorOf('Too busy; try again')]));
    expect(requests).toHaveLength(16);
    expect((await ask('/x', {}, { method: other })).body).toBe('at once');
    expect((await ask('/x', { Authorization: 'Bearer bob' }, { method: other })).body).toBe('at once');
    proxied.upstream.respond = (_request, response) => response.end();
    for (const response of held) response.end();
    await Promise.all(all);
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(216);
    // Those with a 503 were not sent.
    expect(written).toHaveLength(method === 'POST' ? 216 : 2);
  });
});

describe('the memory', () => {
  it('is bounded, and loses first what was not used for longest', async () => {
    const { ask } = await open({ maxBytes: 60_000 });
    proxied.upstream.respond = (request, response) => response.end(`${request.url} ${'x'.repeat(1_000)}`);
    const ageOf = async (path: string) => (await ask(path)).headers.get('Age');
    for (let index = 0; index < 40; index++) {
      await ask(`/${index}`);
      expect(await ageOf('/0')).not.toBeNull();
    }
    expect(await ageOf('/39')).not.toBeNull();
    expect(await ageOf('/1')).toBeNull();
  });

  it.each([
    ['body', 7_000],
    ['header', 7_000],
    ['varied header', 7_000],
    ['path', 3_500],
  ])('holds no response whose %s would take more than an eighth of it', async (part, size) => {
    const sizes = [[80_000, size] as const, [80_000, (size * 8) / 7] as const, [0, size] as const];
    for (const [maxBytes, length] of sizes) {
      const { ask, close } = await open({ maxBytes });
      // It is not stored.
      const other = 'x'.repeat(5_000);
      const long = (which: string) => (which === part ? 'x'.repeat(length) : '');
      numbered({ 'X-Odd': long('header'), Vary: 'X-Varied' }, 200, long('body'));
      const read = () => ask(`/${long('path')}`, { 'X-Varied': long('varied header'), 'X-Other': other });
      await read();
      expect((await read()).headers.has('Age')).toBe(maxBytes > 0 && length === size);
      close();
    }
  });
});
