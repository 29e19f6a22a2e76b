/** Which pages may use the gateway from a browser: none, or those of the origins that are named. */

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

/** What CORS says in the answer. */
const said = ({ headers }: Response) =>
  Object.fromEntries([...headers].filter(([name]) => name.startsWith('access-control-')));

describe.each(endpoints)('at %s', (path) => {
  it.each([app, local])('a page of %s may ask, and read what it needs', async (origin) => {
    const response = await ask(open, path, { headers: { Origin: origin } });
    expect(response.status).toBe(200);
    expect(said(response)).toEqual({
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
  });

  it('it may read why it was refused', async () => {
    const response = await ask(open, path, { headers: { Origin: app, Authorization: 'Bearer x' } });
    expect(response.status).toBe(401);
    expect(response.headers.get('Access-Control-Allow-Origin')).toBe(app);
  });

  it('its browser is told before', async () => {
    const response = await preflight(open, path, app);
    expect(response.status).toBe(204);
    expect(said(response)).toMatchObject({
      'access-control-allow-origin': app,
      'access-control-allow-methods': 'GET,HEAD,POST,PUT,DELETE',
      'access-control-allow-headers': 'authorization,content-type',
      'access-control-max-age': '7200',
    });
    expect(response.headers.get('Vary')).toBe('Origin, Access-Control-Request-Headers');
  });

  it('it may send any header, such as those of Apollo Client and of tracing', async () => {
    const headers =
      'apollographql-client-name,apollographql-client-version,apollo-require-preflight,baggage,sentry-trace,x-of-its-own';
    const response = await preflight(open, path, app, headers);
    expect(response.headers.get('Access-Control-Allow-Headers')).toBe(headers);
  });

  it.each(['https://evil.example', 'https://app.example.com.evil.example', `${app}:8443`, 'null', '*'])(
    'a page of %s may not',
    async (origin) => {
      for (const response of [
        await ask(open, path, { headers: { Origin: origin } }),
        await preflight(open, path, origin),
      ]) {
        expect(response.headers.get('Access-Control-Allow-Origin')).toBeNull();
        expect(response.headers.get('Access-Control-Allow-Credentials')).toBeNull();
        expect(response.headers.get('Vary')).toMatch(/\bOrigin\b/);
      }
    },
  );

  it('no page may, unless its origin is named', async () => {
    for (const response of [
      await ask(closed, path, { headers: { Origin: app } }),
      await preflight(closed, path, app),
    ])
      expect(said(response)).toEqual({});
  });

  it('whatever is no page is answered as ever', async () => {
    const response = await ask(open, path);
    expect(response.status).toBe(200);
    expect(said(response)).toEqual({});
    // A cache must not give it to a page.
    expect(response.headers.get('Vary')).toMatch(/Origin$/);
  });
});

it.each(['/', '/docs', '/graphql'])(
  'a page of the gateway is read by none of another origin: %s',
  async (path) => {
    const response = await fetch(open.url + path, { headers: { Origin: app, Accept: 'text/html' } });
    expect(response.headers.get('Content-Type')).toMatch(/^text\/html/);
    expect(said(response)).toEqual({});
  },
);

it('a page that would rather have HTML of the REST API may read it all the same', async () => {
  const accept = 'text/html, application/json;q=0.9, */*;q=0.1';
  const response = await ask(open, '/api/v1/users/me', { headers: { Origin: app, Accept: accept } });
  expect(said(response)).toMatchObject({ 'access-control-allow-origin': app });
});

describe('a page of an origin that is not named', () => {
  const strange = 'http://localhost:3000';

  it.each([
    ['where none is', () => closed, `set CORS_ORIGINS=${strange}`],
    [
      'where others are, which it is not told and must not replace',
      () => open,
      `add ${strange} to CORS_ORIGINS`,
    ],
  ])('has its preflight refused with the setting that would allow it: %s', async (_, gateway, remedy) => {
    const words = `"${strange}" is not an origin whose pages may use this gateway: to allow them, ${remedy}`;
    const rest = await preflight(gateway(), '/api/v1/users/me', strange);
    expect(rest.status).toBe(403);
    expect(await rest.json()).toEqual({ ok: false, error: words });
    const graphql = await preflight(gateway(), '/graphql', strange);
    expect(graphql.status).toBe(403);
    expect(await graphql.json()).toMatchObject({ errors: [{ message: words }] });
  });

  it('is told of in the log, once, and so are no more than a hundred', async () => {
    const gateway = await openBeside(closed.database).then((database) =>
      openTestGateway(database, { logLevel: 'warn' }),
    );
    const lines = () => gateway.log.map((line) => JSON.parse(line)).filter(({ level }) => level === 40);
    await preflight(gateway, '/graphql', strange);
    await ask(gateway, '/graphql', { headers: { Origin: strange } });
    expect(lines()).toMatchObject([
      { msg: expect.stringContaining(`to allow them, set CORS_ORIGINS=${strange}`) },
    ]);
    for (let port = 1; port <= 110; port++) await preflight(gateway, '/graphql', `http://h:${port}`);
    expect(lines()).toHaveLength(100);
    await gateway.close();
  });

  it('is told to be served where it is a file, which has no origin', async () => {
    const response = await preflight(closed, '/api/v1/users/me', 'null');
    expect(response.status).toBe(403);
    expect(await response.json()).toEqual({
      ok: false,
      error:
        '"null" is not an origin whose pages may use this gateway: it is that of a file. Serve it, such as by python3 -m http.server 5173, set CORS_ORIGINS=http://localhost:5173, and open http://localhost:5173',
    });
    const named = await openTestGateway(await openBeside(closed.database), {
      settings: { CORS_ORIGINS: app },
      logLevel: 'warn',
    });
    await preflight(named, '/graphql', 'null');
    expect(named.log.join()).toContain(`set CORS_ORIGINS=${app},http://localhost:5173, and open`);
    await named.close();
  });

  it.each(['https://', 'x', 'file://', 'chrome-extension://abc'])(
    'has no setting, if pages of it have no name: %s',
    async (origin) => {
      const response = await preflight(closed, '/api/v1/users/me', origin);
      expect(await response.json()).toEqual({
        ok: false,
        error: `"${origin}" is not an origin whose pages may use this gateway`,
      });
    },
  );
});

it('the gateway’s own pages say where they are from, and need nobody’s leave', async () => {
  const response = await ask(open, '/api/v1/users/me', { headers: { Origin: open.url } });
  expect(response.status).toBe(200);
  expect(open.log).toEqual([]);
});

it('a page of the gateway’s own host may come by another scheme, if it is named', async () => {
  const named = await openTestGateway(await openBeside(closed.database), {
    settings: { CORS_ORIGINS: 'http://localhost:1,https://gateway.example' },
  });
  const origin = `https://${new URL(named.url).host}`;
  const listed = await openTestGateway(await openBeside(closed.database), {
    settings: { CORS_ORIGINS: origin, PORT: '0' },
  });
  // As behind a proxy that speaks TLS: the names are equal, and the schemes are not.
  const ownOrigin = `https://${new URL(listed.url).host}`;
  expect((await preflight(listed, '/graphql', ownOrigin)).status).not.toBe(403);
  expect(said(await preflight(listed, '/graphql', origin))).toMatchObject({
    'access-control-allow-origin': origin,
  });
  await named.close();
  await listed.close();
});
