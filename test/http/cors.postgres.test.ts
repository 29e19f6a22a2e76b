/** Which pages may use the gateway from a browser: none, or those of the origins in CORS_ORIGINS. */

import { describe, expect, it } from 'vitest';
import type { TestGateway } from '../support/gateway.ts';
import { gatewayBeside, gatewayWith } from '../support/setUp.ts';

const app = 'https://app.example.com';
const local = 'http://localhost:5173';
const me = '/api/v1/users/me';

const { gateway: closed, alice } = await gatewayWith(['alice']);
const open = await gatewayBeside(closed.database, { settings: { CORS_ORIGINS: `${app}, ${local}/` } });

const ask = ({ url }: TestGateway, path: string, headers: Record<string, string> = {}, method = 'GET') =>
  fetch(url + path, { method, headers: { Authorization: `Bearer ${alice.token}`, ...headers } });

const preflight = ({ url }: TestGateway, origin: string, path = me, headers = 'authorization,x-of-its-own') =>
  fetch(url + path, {
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

describe.each(['/graphql?query={viewer{username}}', me])('at %s', (path) => {
  it.each([app, local])(
    'a page of %s, which is allowed, may send requests and read responses',
    async (origin) => {
      const response = await ask(open, path, { Origin: origin });
      expect(response.status).toBe(200);
      expect(corsHeaders(response)).toEqual({
        'access-control-allow-origin': origin,
        'access-control-expose-headers':
          'ETag,Retry-After,RateLimit,RateLimit-Policy,WWW-Authenticate,X-Request-Id,Dovetail-Position,Deprecation,Sunset,Link,Age,Preference-Applied',
      });
      const vary = response.headers.get('Vary');
      expect(vary).toMatch(/^Authorization(, Accept)?, Accept-Encoding, Origin$/);
      const etag = response.headers.get('ETag') ?? '';
      const again = await ask(open, path, { Origin: origin, 'If-None-Match': etag });
      expect([again.status, again.headers.get('Vary')]).toEqual([304, vary]);
      const denied = await ask(open, path, { Origin: origin, Authorization: 'Bearer x' });
      for (const other of [again, denied])
        expect(other.headers.get('Access-Control-Allow-Origin')).toBe(origin);

      const asked = await preflight(open, origin, path);
      expect([asked.status, asked.headers.get('Content-Length')]).toEqual([204, null]);
      expect(corsHeaders(asked)).toEqual({
        'access-control-expose-headers': response.headers.get('Access-Control-Expose-Headers'),
        'access-control-allow-origin': origin,
        'access-control-allow-methods': 'GET,HEAD,POST',
        'access-control-allow-headers': 'authorization,x-of-its-own',
        'access-control-max-age': '7200',
      });
      expect(asked.headers.get('Vary')).toBe('Origin, Access-Control-Request-Headers');
    },
  );

  it.each(['https://evil.example', `${app}.evil.example`, `${app}:8443`, 'null', '*'])(
    'a page of %s, which is not allowed, gets no Access-Control-Allow-Origin',
    async (origin) => {
      const plain = await ask(open, path, { Origin: origin });
      // Only the browser knows whether its page may read the response, such as that to a form.
      expect(plain.status).toBe(200);
      for (const response of [plain, await preflight(open, origin, path)]) {
        expect(response.headers.get('Access-Control-Allow-Origin')).toBeNull();
        expect(response.headers.get('Access-Control-Allow-Credentials')).toBeNull();
        expect(response.headers.get('Vary')).toMatch(/\bOrigin\b/);
      }
    },
  );

  it('there are no CORS headers without CORS_ORIGINS, nor for a request without an origin', async () => {
    const plain = await ask(open, path);
    const others = [await ask(closed, path, { Origin: app }), await preflight(closed, app, path)];
    for (const response of [plain, ...others]) expect(corsHeaders(response)).toEqual({});
    // A cache must not give this response to a page, but may where it is the same for all pages.
    expect(plain.headers.get('Vary')).toMatch(/Origin$/);
    expect((await ask(closed, path)).headers.get('Vary')).not.toMatch(/Origin/);
  });

  it('only OPTIONS with Access-Control-Request-Method is a preflight', async () => {
    const headers = { Origin: app };
    expect((await ask(open, path, headers, 'OPTIONS')).status).toBe(405);
    const method = { 'Access-Control-Request-Method': 'POST' };
    expect((await ask(open, path, { ...headers, ...method })).status).toBe(200);
  });
});

describe('the preflight of an origin that is not allowed', () => {
  const other = 'http://localhost:3000';
  it.each([other, 'null', 'x', 'chrome-extension://abc/page'])(
    '%s is rejected with a message that names the setting, and no other origin',
    async (origin) => {
      const message = `"${origin}" is not an origin whose pages may use this gateway: CORS_ORIGINS does not name it`;
      for (const gateway of [open, closed]) {
        const rest = await preflight(gateway, origin);
        expect([rest.status, await rest.json()]).toEqual([403, { ok: false, error: message }]);
        const graphql = await preflight(gateway, origin, '/graphql');
        expect([graphql.status, await graphql.json()]).toMatchObject([403, { errors: [{ message }] }]);
      }
    },
  );

  it('is logged once per origin, for at most a hundred origins', async () => {
    const settings = { CORS_ORIGINS: app };
    const gateway = await gatewayBeside(closed.database, { logLevel: 'warn', settings });
    const lines = () => gateway.log.map((line) => JSON.parse(line)).filter(({ level }) => level === 40);
    await preflight(gateway, other);
    await ask(gateway, '/graphql', { Origin: other });
    expect(lines()).toMatchObject([{ msg: expect.stringContaining(other) }]);
    for (let port = 1; port <= 110; port++) await preflight(gateway, `http://h:${port}`);
    expect(lines()).toHaveLength(100);
  });
});

it('GraphiQL, which may have a token, has no CORS headers for a page of another origin', async () => {
  const response = await fetch(`${open.url}/graphql`, { headers: { Origin: app, Accept: 'text/html' } });
  expect([response.status, corsHeaders(response)]).toEqual([200, {}]);
});

it('the origin of the gateway’s own pages is allowed without CORS_ORIGINS naming it', async () => {
  expect((await ask(open, me, { Origin: open.url })).status).toBe(200);
  expect(open.log).toEqual([]);
});

it('the pages of PUBLIC_URL are the gateway’s own, whatever host a proxy sends', async () => {
  const gateway = await gatewayBeside(closed.database, { settings: { PUBLIC_URL: `${app}/dovetail` } });
  const [own, other] = [await preflight(gateway, app), await preflight(gateway, local)];
  expect([own.status, other.status]).toEqual([401, 403]);
});

it('a named origin is allowed also if its host is that of the request, as behind a proxy that terminates TLS', async () => {
  const response = await ask(open, me, { Host: new URL(app).host, Origin: app });
  expect(corsHeaders(response)).toMatchObject({ 'access-control-allow-origin': app });
});
