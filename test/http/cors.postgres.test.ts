/** Which pages may use the gateway from a browser: none, or those of the origins in CORS_ORIGINS. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Account, createAccount } from '../support/accounts.ts';
import { openBeside, openTestGateway, type TestGateway } from '../support/gateway.ts';

const app = 'https://app.example.com';
const local = 'http://localhost:5173';

let closed: TestGateway;
let open: TestGateway;
let alice: Account;

beforeAll(async () => {
  closed = await openTestGateway();
  open = await openTestGateway(await openBeside(closed.database), {
    settings: { CORS_ORIGINS: `${app}, ${local}/` },
  });
  alice = await createAccount(closed.database.client, 'alice');
});
afterAll(async () => {
  await open?.close();
  await closed?.close();
});

const endpoints = ['/graphql?query={viewer{username}}', '/api/v1/users/me'];

const ask = (gateway: TestGateway, path: string, init: RequestInit = {}) =>
  fetch(gateway.url + path, {
    ...init,
    headers: { Authorization: `Bearer ${alice.token}`, ...init.headers },
  });

const preflight = (
  gateway: TestGateway,
  path: string,
  origin: string,
  headers = 'authorization,content-type',
) =>
  fetch(gateway.url + path, {
    method: 'OPTIONS',
    headers: {
      Origin: origin,
      'Access-Control-Request-Method': 'POST',
      'Access-Control-Request-Headers': headers,
    },
  });

/** The CORS headers of the response. */
const corsHeaders = ({ headers }: Response) =>
  Object.fromEntries([...headers].filter(([name]) => name.startsWith('access-control-')));

describe.each(endpoints)('at %s', (path) => {
  it.each([app, local])(
    'a page of the allowed origin %s may send requests, and read the headers that it needs',
    async (origin) => {
      const response = await ask(open, path, { headers: { Origin: origin } });
      expect(response.status).toBe(200);
      expect(corsHeaders(response)).toEqual({
        'access-control-allow-origin': origin,
        'access-control-expose-headers':
          'ETag,Retry-After,RateLimit,RateLimit-Policy,WWW-Authenticate,X-Request-Id,Dovetail-Position,Deprecation,Sunset,Link,Age',
      });
      expect(response.headers.get('Vary')).toMatch(/^Authorization(, Accept)?, Accept-Encoding, Origin$/);

      const etag = response.headers.get('ETag') ?? '';
      const again = await ask(open, path, { headers: { Origin: origin, 'If-None-Match': etag } });
      expect(again.status).toBe(304);
      expect(again.headers.get('Access-Control-Allow-Origin')).toBe(origin);
      expect(again.headers.get('Vary')).toBe(response.headers.get('Vary'));
    },
  );

  it('the preflight of an allowed origin gets the CORS headers', async () => {
    const response = await preflight(open, path, app);
    expect(response.status).toBe(204);
    expect(corsHeaders(response)).toMatchObject({
      'access-control-allow-origin': app,
      'access-control-allow-methods': 'GET,HEAD,POST',
      'access-control-allow-headers': 'authorization,content-type',
      'access-control-max-age': '7200',
    });
    expect(response.headers.get('Vary')).toBe('Origin, Access-Control-Request-Headers');
  });

  it.each(['https://evil.example', 'https://app.example.com.evil.example', `${app}:8443`, 'null', '*'])(
    'a page of the origin %s, which is not allowed, gets no Access-Control-Allow-Origin',
    async (origin) => {
      const plain = await ask(open, path, { headers: { Origin: origin } });
      // Only the browser knows whether its page may read the response, such as that to a form.
      expect(plain.status).toBe(200);
      for (const response of [plain, await preflight(open, path, origin)]) {
        expect(response.headers.get('Access-Control-Allow-Origin')).toBeNull();
        expect(response.headers.get('Access-Control-Allow-Credentials')).toBeNull();
        expect(response.headers.get('Vary')).toMatch(/\bOrigin\b/);
      }
    },
  );

  it('no page gets CORS headers without CORS_ORIGINS', async () => {
    for (const response of [
      await ask(closed, path, { headers: { Origin: app } }),
      await preflight(closed, path, app),
    ])
      expect(corsHeaders(response)).toEqual({});
    // The response is the same for all pages, so a cache may give it to any.
    expect((await ask(closed, path)).headers.get('Vary')).not.toMatch(/Origin/);
  });

  it.each([
    ['OPTIONS', {}],
    ['GET', { 'Access-Control-Request-Method': 'POST' }],
  ])('a %s request with the headers %j is no preflight', async (method, headers) => {
    const response = await ask(open, path, { method, headers: { Origin: app, ...headers } });
    expect(response.status).toBe(method === 'GET' ? 200 : 405);
  });

  it('a request without an origin gets no CORS headers', async () => {
    const response = await ask(open, path);
    expect(response.status).toBe(200);
    expect(corsHeaders(response)).toEqual({});
    // A cache must not give this response to a page.
    expect(response.headers.get('Vary')).toMatch(/Origin$/);
  });
});

it.each(['/', '/docs', '/graphql'])(
  'a page of the gateway itself has no CORS headers for another origin: %s',
  async (path) => {
    const response = await fetch(open.url + path, { headers: { Origin: app, Accept: 'text/html' } });
    expect(response.headers.get('Content-Type')).toMatch(/^text\/html/);
    expect(corsHeaders(response)).toEqual({});
  },
);

describe('the preflight of an origin that is not allowed', () => {
  const otherOrigin = 'http://localhost:3000';

  it.each([
    ['without CORS_ORIGINS', () => closed, `set CORS_ORIGINS=${otherOrigin}`],
    [
      'with other origins in CORS_ORIGINS, which are not disclosed',
      () => open,
      `add ${otherOrigin} to CORS_ORIGINS`,
    ],
  ])('is rejected with a message that has the setting to allow it: %s', async (_, gateway, remedy) => {
    const message = `"${otherOrigin}" is not an origin whose pages may use this gateway: to allow them, ${remedy}`;
    const rest = await preflight(gateway(), '/api/v1/users/me', otherOrigin);
    expect(rest.status).toBe(403);
    expect(await rest.json()).toEqual({ ok: false, error: message });
    const graphql = await preflight(gateway(), '/graphql', otherOrigin);
    expect(graphql.status).toBe(403);
    expect(await graphql.json()).toMatchObject({ errors: [{ message }] });
  });

  it('is logged once per origin, for at most a hundred origins', async () => {
    const gateway = await openBeside(closed.database).then((database) =>
      openTestGateway(database, { logLevel: 'warn' }),
    );
    const lines = () => gateway.log.map((line) => JSON.parse(line)).filter(({ level }) => level === 40);
    await preflight(gateway, '/graphql', otherOrigin);
    await ask(gateway, '/graphql', { headers: { Origin: otherOrigin } });
    expect(lines()).toMatchObject([
      { msg: expect.stringContaining(`to allow them, set CORS_ORIGINS=${otherOrigin}`) },
    ]);
    for (let port = 1; port <= 110; port++) await preflight(gateway, '/graphql', `http://h:${port}`);
    expect(lines()).toHaveLength(100);
    await gateway.close();
  });

  it('of a file is rejected with advice to serve the file', async () => {
    const response = await preflight(closed, '/api/v1/users/me', 'null');
    expect(response.status).toBe(403);
    expect(await response.json()).toEqual({
      ok: false,
      error:
        '"null" is not an origin whose pages may use this gateway: it is that of a file. Serve it, such as by python3 -m http.server 5173, set CORS_ORIGINS=http://localhost:5173, and open http://localhost:5173',
    });
  });

  it.each(['x', 'file://', 'chrome-extension://abc/page'])(
    'is rejected without a setting where CORS_ORIGINS cannot have the origin: %s',
    async (origin) => {
      const response = await preflight(closed, '/api/v1/users/me', origin);
      expect(await response.json()).toEqual({
        ok: false,
        error: `"${origin}" is not an origin whose pages may use this gateway`,
      });
    },
  );
});

it.each(['capacitor://localhost', 'chrome-extension://abc'])(
  'the origin of an app or an extension is allowed if CORS_ORIGINS has it: %s',
  async (origin) => {
    const rejected = await preflight(closed, '/api/v1/users/me', origin);
    expect(await rejected.json()).toMatchObject({
      error: expect.stringContaining(`set CORS_ORIGINS=${origin}`),
    });
    const named = await openTestGateway(await openBeside(closed.database), {
      settings: { CORS_ORIGINS: origin },
    });
    expect(corsHeaders(await preflight(named, '/api/v1/users/me', origin))).toMatchObject({
      'access-control-allow-origin': origin,
    });
    await named.close();
  },
);

it('the origin of the gateway’s own pages is allowed without CORS_ORIGINS naming it', async () => {
  const response = await ask(open, '/api/v1/users/me', { headers: { Origin: open.url } });
  expect(response.status).toBe(200);
  expect(open.log).toEqual([]);
});

it('an origin in CORS_ORIGINS is allowed also if its host is that of the request, as behind a proxy that terminates TLS', async () => {
  const headers = { Host: new URL(app).host, Origin: app };
  expect(corsHeaders(await ask(open, '/api/v1/users/me', { headers }))).toMatchObject({
    'access-control-allow-origin': app,
  });
});
