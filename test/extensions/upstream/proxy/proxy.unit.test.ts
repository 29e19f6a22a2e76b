/** REST in front of an upstream: what is forwarded, what comes back, and what is sent from the cache. */

import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { openProxied, type ProxiedOptions } from './proxied.ts';

let proxied: Awaited<ReturnType<typeof openProxied>>;
const open = async (options?: ProxiedOptions) => {
  proxied = await openProxied(options);
  return proxied;
};
afterEach(() => {
  vi.restoreAllMocks();
  proxied?.close();
});

/** An upstream that responds with these headers, and numbers its responses. */
function numbered(headers: Record<string, string> = {}, status = 200) {
  let number = 0;
  proxied.upstream.respond = (_request, response) =>
    response.writeHead(status, headers).end(`response ${++number}`);
}

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

describe('what is forwarded', () => {
  it('has the token of the account, and the headers and the body of the client, whatever they are named', async () => {
    const { ask, requests } = await open();
    const headers = { constructor: 'a', 'Content-Type': 'text/odd', 'X-Own': 'mine' };
    await ask('/x?b=1&a=%32', headers, { method: 'PATCH', body: 'é' });
    expect(requests).toMatchObject([
      {
        method: 'PATCH',
        target: '/api/v1/x?b=1&a=%32',
        body: 'é',
        headers: {
          constructor: 'a',
          'content-type': 'text/odd',
          'x-own': 'mine',
          authorization: 'Bearer token of alice',
        },
      },
    ]);
  });

  it('has nothing about the address of the client, its connection, its way here and its other credentials', async () => {
    const { ask, requests } = await open();
    const address = '10.1.2.3';
    await ask('/x', {
      Cookie: 'a=b',
      Forwarded: `for=${address}`,
      'X-Forwarded-For': address,
      'X-Real-IP': address,
      'CF-Connecting-IP': address,
      Via: '1.1 proxy',
      'X-Request-Id': 'mine',
    });
    const [{ headers } = { headers: {} }] = requests;
    expect(JSON.stringify(headers)).not.toMatch(/10\.1\.2\.3|proxy|a=b|mine|Bearer alice/);
    expect(headers).toMatchObject({ authorization: 'Bearer token of alice' });
  });

  const upwards = ['/..%2fusers', '/a/../../users', '/%2e%2e/%2E./b', '/a\\..\\b', '/dtt/..;/x', '/..'];
  it('is no request for a stream of events: the gateway says that the service cannot be followed', async () => {
    const { ask, requests } = await open();
    const { status, body } = await ask('/x', { Accept: 'text/event-stream' });
    expect([status, JSON.parse(body)]).toEqual([
      406,
      {
        ok: false,
        error: 'REST cannot be followed in front of another service; use a subscription of GraphQL',
      },
    ]);
    expect(requests).toEqual([]);
    expect((await ask('/x', { Accept: 'application/json, text/event-stream' })).status).toBe(200);
  });

  it('never leaves the base, has a method that is allowed, and a body of 64 KiB at most', async () => {
    const { ask, requests } = await open();
    for (const path of upwards) expect((await ask(path)).status, path).toBe(404);
    const { status, headers } = await ask('/x', {}, { method: 'OPTIONS' });
    expect([status, headers.get('Allow')]).toEqual([405, 'GET, HEAD, POST, PUT, PATCH, DELETE']);
    const tooLarge = await ask('/x', {}, { method: 'PATCH', body: 'x'.repeat(65 * 1024) });
    expect([tooLarge.status, tooLarge.headers.get('Connection')]).toEqual([413, 'close']);
    expect(JSON.parse(tooLarge.body)).toEqual({ ok: false, error: 'Request body too large' });
    expect(requests).toEqual([]);
  });
});

describe('what comes back', () => {
  it('is the status, the headers and the bytes of the upstream, with the id of the request alone', async () => {
    const { ask } = await open();
    const sent = {
      'Content-Type': 'text/odd',
      'Cache-Control': 'Public, Max-Age=3600',
      'X-Odd': 'theirs',
      'X-Content-Type-Options': 'theirs',
      Date: 'Tue, 17 Feb 2026 12:00:00 GMT',
      Vary: 'X-Odd',
    };
    const dropped = {
      Connection: 'keep-alive, X-Hop',
      'X-Hop': 'theirs',
      'X-Request-Id': 'theirs',
      'Set-Cookie': 'a=b',
      Server: 'theirs',
      'Access-Control-Allow-Origin': '*',
    };
    const bytes = Buffer.from([0xff, 0, 0x7b]);
    proxied.upstream.respond = (_request, response) =>
      response.writeHead(418, { ...sent, ...dropped }).end(bytes);
    const { status, headers } = await ask('/x');
    expect(status).toBe(418);
    expect(Object.fromEntries(headers)).toEqual({
      ...Object.fromEntries(Object.entries(sent).map(([name, value]) => [name.toLowerCase(), value])),
      'x-request-id': expect.stringMatching(/^[\da-f-]{36}$/),
      ratelimit: '"token";r=9;t=60',
      'content-length': '3',
      connection: 'keep-alive',
      'keep-alive': expect.anything(),
    });
  });

  it('has the rate limits of the upstream if it states any, and not those of the gateway', async () => {
    const { ask } = await open();
    numbered({ 'X-RateLimit-Remaining': '7' });
    const { headers } = await ask('/x');
    expect(headers.get('X-RateLimit-Remaining')).toBe('7');
    expect(headers.get('RateLimit')).toBeNull();
  });

  it.each([
    ['refuses the connection', 502, 0],
    ['closes the connection', 502, 1],
    ['closes a connection that was idle', 502, 1],
    ['does not respond in time', 504, 1],
    ['has no valid status', 502, 1],
    ['responds with 5 MiB', 502, 1],
  ])(
    'is an error if the upstream %s, and the gateways are told of a write that may have been done, which is not repeated',
    async (what, status, told) => {
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
      expect(response.status).toBe(status);
      expect(JSON.parse(response.body)).toMatchObject({ ok: false });
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

  it('is a 403 without a request to the upstream, if the request may write and its token may only read, or may by now', async () => {
    const { ask, requests } = await open();
    const reader = { Authorization: 'Bearer own reader of alice' };
    const overridden = { ...reader, 'X-HTTP-Method-Override': 'DELETE' };
    for (const [headers, method] of [
      [overridden, 'GET'],
      [{ Authorization: 'Bearer own narrowed of alice' }, 'PATCH'],
      ...['POST', 'PUT', 'PATCH', 'DELETE'].map((each) => [reader, each] as const),
    ] as const)
      expect(await ask('/x', headers, { method })).toMatchObject({
        status: 403,
        body: '{"ok":false,"error":"Forbidden: this needs a token with the scope activate"}',
      });
    expect(requests).toEqual([]);
    expect((await ask('/x', reader)).status).toBe(200);
  });

  it('is a 401 only if it is about the token of the client', async () => {
    const { ask, rejected } = await open();
    numbered({}, 401);
    expect((await ask('/x')).status).toBe(401);
    expect((await ask('/x', { Authorization: 'Bearer own of alice' })).status).toBe(502);
    expect(rejected).toEqual([1, 1]);
  });

  it('has the gateway wait as long as the upstream asks for by a 429, and not by a 503, which may be about one path', async () => {
    const { ask, budget } = await open({ rate: 60 });
    numbered({ 'Retry-After': '3600' }, 503);
    await ask('/x');
    expect(budget(1).delayFor(1)).toBe(0);
    numbered({ 'Retry-After': '30' }, 429);
    expect((await ask('/x')).headers.get('Retry-After')).toBe('30');
    expect(budget(1).delayFor(1)).toBeGreaterThan(29_000);
    expect(budget(2).delayFor(1)).toBe(0);
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

/** Which response a second request gets: that to the first, or another. */
const cases: readonly (readonly [name: string, isStored: boolean, Case])[] = [
  ['without caching headers, within the lifetime', true, { later: 59 }],
  ['without caching headers, after the lifetime', false, { later: 61 }],
  ['that is a 404', true, { status: 404 }],
  ['that is a 403', false, { status: 403 }],
  ['that is a redirect', false, { status: 301 }],
  ['with max-age, before it', true, { response: control('Max-Age=300'), later: 299 }],
  ['with max-age, after it', false, { response: control('max-age=10'), later: 11 }],
  ['with max-age and an age', false, { response: { ...control('max-age=10'), Age: '9' }, later: 2 }],
  ['with no-store', false, { response: control('no-store') }],
  ['with NO-CACHE', false, { response: control('NO-CACHE') }],
  ['with Pragma', false, { response: { Pragma: 'no-cache' } }],
  ['that has expired', false, { response: { Expires: '0' } }],
  [
    'that has expired, and is immutable',
    false,
    { response: { ...control('immutable'), Date: modified, Expires: justAfter }, later: 2 },
  ],
  ['to a client that wants no-cache', false, { second: control('No-Cache') }],
  ['to a client that says Pragma', false, { second: { Pragma: 'No-Cache' } }],
  ['to a client that wants it younger', false, { second: control('max-age=5'), later: 7 }],
  ['to a client that takes it as old', true, { second: control('max-age=9'), later: 7 }],
  ['of a client that wants it not stored', false, { first: control('no-store') }],
  ['that varies, to an equal request', true, { response: { Vary: 'Accept-Language' } }],
  [
    'that varies, to another request',
    false,
    { response: { Vary: 'Accept-Language' }, second: { 'Accept-Language': 'de' } },
  ],
  ['that varies by all', false, { response: { Vary: '*' } }],
  ['to another token of the account', false, { second }],
  ['to another account', false, { second: { Authorization: 'Bearer bob' } }],
  ['to a request for a part', false, { second: { Range: 'bytes=0-1' } }],
  [
    'with a coding, to a client that accepts none',
    false,
    { response: { 'Content-Encoding': 'odd' }, first: { 'Accept-Encoding': 'odd' } },
  ],
  [
    'with Pragma beside another directive and a date',
    false,
    { response: { ...control('private'), Pragma: 'No-Cache', 'Last-Modified': modified } },
  ],
  [
    'with the name of a field that is like a directive',
    false,
    { response: control('private="x, max-age=600"'), later: 61 },
  ],
  [
    'with a directive whose name is like one of these',
    false,
    { response: { ...control('x-max-age=0'), 'Last-Modified': modified }, later: 61 },
  ],
];

describe('a stored response', () => {
  it.each(cases)('%s is sent again: %s', async (_, isStored, { response, status, first, second, later }) => {
    const { ask } = await open();
    numbered(response, status);
    expect((await ask('/x', first)).body).toBe('response 1');
    if (later) advance(later);
    const { body, headers } = await ask('/x', second);
    expect(body).toBe(isStored ? 'response 1' : 'response 2');
    if (isStored) expect(Number(headers.get('Age'))).toBe(later ?? 0);
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

  it.each([
    ['its tag', { ETag: '"v1"' }, { 'If-None-Match': '"v0", W/"v1"' }, 304],
    ['another tag', { ETag: '"v1"' }, { 'If-None-Match': '"v0"' }, 200],
    ['its time', { 'Last-Modified': modified }, { 'If-Modified-Since': modified }, 304],
    [
      'an earlier time',
      { 'Last-Modified': modified },
      { 'If-Modified-Since': 'Sun, 31 Dec 2023 00:00:00 GMT' },
      200,
    ],
    ['a tag where it has none', {}, { 'If-None-Match': '"v1"' }, 200],
  ])(
    'is what a client with %s is told to have, the first time and later',
    async (_, response, condition, status) => {
      const { ask, requests } = await open();
      numbered({ 'Content-Type': 'text/odd', ...response });
      for (const _time of [1, 2]) {
        const given = await ask('/x', condition);
        expect([given.status, given.body]).toEqual(status === 304 ? [304, ''] : [200, 'response 1']);
      }
      expect(requests).toHaveLength(1);
    },
  );

  it('is dropped by a write of the account through this gateway or another, and not by a write of another account', async () => {
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
  });

  it.each(['X-HTTP-Method-Override', 'X-Method-Override'])(
    'is dropped by a read that asks for another method: %s',
    async (name) => {
      const { ask } = await open();
      numbered();
      await ask('/x');
      await ask('/y', { [name]: 'DELETE' });
      expect((await ask('/x')).body).toBe('response 3');
    },
  );

  it('is not sent while announcements are not heard, or not in time', async () => {
    let hasCaughtUp = true;
    const { ask, feed } = await open({ catchUp: async () => hasCaughtUp });
    numbered();
    await ask('/x');
    expect((await ask('/x')).body).toBe('response 1');
    feed.falter();
    expect((await ask('/x')).body).toBe('response 2');
    feed.falter(true);
    expect((await ask('/x')).body).toBe('response 1');
    hasCaughtUp = false;
    expect((await ask('/x')).body).toBe('response 3');
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
    const reads = [
      {},
      {},
      { 'Accept-Language': 'de' },
      { 'Cache-Control': 'no-cache' },
      { 'Cache-Control': 'no-cache' },
      second,
      { Authorization: 'Bearer bob' },
    ];
    const numbers = [1, 1, 2, 3, 4, 5, 6];
    const responses: ReturnType<typeof ask>[] = [];
    for (const [index, headers] of reads.entries()) {
      responses.push(ask('/x', headers as Record<string, string>));
      await expect.poll(() => requests.length, { interval: 5 }).toBe(numbers[index]);
    }
    for (const end of ends) end();
    const bodies = (await Promise.all(responses)).map(({ body }) => body);
    expect(bodies).toEqual(numbers.map((number) => `response ${number}`));
    expect(requests).toHaveLength(6);
  });
});

describe('while the upstream is away or busy', () => {
  const troubles = ['away', 429, 500, 503] as const;
  const fail = (trouble: (typeof troubles)[number]) => {
    proxied.upstream.respond = (_request, response) =>
      trouble === 'away' ? void response.destroy() : void response.writeHead(trouble).end('trouble');
  };

  it.each(troubles)(
    '%s: what is stored is sent for up to an hour after its lifetime, with its age',
    async (trouble) => {
      const { ask } = await open();
      numbered();
      await ask('/x');
      fail(trouble);
      advance(60 + 3_590);
      const { status, headers, body } = await ask('/x');
      expect([status, headers.get('Age'), body]).toEqual([200, '3650', 'response 1']);
      advance(20);
      expect((await ask('/x')).status).toBe(trouble === 'away' ? 502 : trouble);
    },
  );

  it.each([
    ['a client that wants no-cache', {}, { 'Cache-Control': 'no-cache' }],
    ['a client that wants it younger', {}, { 'Cache-Control': 'max-age=61' }],
    ['a response that must be revalidated', { 'Cache-Control': 'max-age=1, must-revalidate' }, {}],
    ['a response with no-cache', { 'Cache-Control': 'no-cache' }, {}],
  ])('%s gets the error', async (_, response, request) => {
    const { ask } = await open();
    numbered(response);
    await ask('/x');
    fail(500);
    advance(62);
    expect((await ask('/x', request as Record<string, string>)).body).toBe('trouble');
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
    const statuses: (number | undefined)[] = [];
    const all = Array.from({ length: 220 }, async (_each, index) => {
      statuses.push((await ask(`/${index}`, {}, { method })).status);
    });
    await expect.poll(() => statuses).toEqual([503, 503, 503, 503]);
    expect(requests).toHaveLength(16);
    expect((await ask('/x', {}, { method: other })).body).toBe('at once');
    expect((await ask('/x', { Authorization: 'Bearer bob' }, { method: other })).body).toBe('at once');
    proxied.upstream.respond = (_request, response) => response.end();
    for (const response of held) response.end();
    await Promise.all(all);
    expect(statuses.filter((status) => status === 200)).toHaveLength(216);
    // Those with a 503 were not sent.
    expect(written).toHaveLength(method === 'POST' ? 216 : 2);
  });

  it('each gets a response in time: a 504 if it was sent, and otherwise a 503', async () => {
    const { ask, requests } = await open({ longest: 2_000, longestWait: 300 });
    proxied.upstream.respond = () => {};
    const sending = Array.from({ length: 60 }, (_each, index) => ask(`/${index}`, {}, { method }));
    const all = await Promise.all(sending);
    expect(requests).toHaveLength(16);
    expect(all.filter(({ status }) => status === 504)).toHaveLength(16);
    const rejected = all.filter(({ status }) => status === 503);
    expect(rejected.map(({ headers }) => headers.get('Retry-After'))).toEqual(Array(44).fill('1'));
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

  it('holds no response that would take more than an eighth of it, and none at all if there is none', async () => {
    for (const maxBytes of [8_000, 0]) {
      const { ask, close } = await open({ maxBytes });
      numbered();
      await ask('/x');
      expect((await ask('/x')).body).toBe('response 2');
      close();
    }
  });
});
