/** The reference of the REST interface, as it is sent to a browser. */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Exchange } from '../../src/http/exchange.ts';
import { createDocs } from '../../src/pages/docs.ts';
import { openTestGateway, type TestGateway } from '../support/gateway.ts';
import { describeShipped } from '../support/openapiDocument.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await openTestGateway();
});
afterAll(() => gateway?.close());

const ask = (path: string, options?: RequestInit) => fetch(gateway.url + path, options);

const { resolve } = createRequire(import.meta.url);
const ofSwaggerUi = (name: string) => readFileSync(resolve(`swagger-ui-dist/${name}`), 'utf8');

describe('the OpenAPI document', () => {
  it('describes the routes, and needs no token', async () => {
    const response = await ask('/openapi.json');
    expect(response.status).toBe(200);
    expect(response.headers.get('Content-Type')).toBe('application/json; charset=utf-8');
    expect(await response.json()).toEqual(JSON.parse(JSON.stringify(describeShipped())));
  });
});

describe('the page of the reference', () => {
  it('needs no token, and loads nothing from other hosts', async () => {
    const page = await (await ask('/docs')).text();
    const loaded = [...page.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, path = '']) => path);
    expect(loaded).toContain('/docs/swagger-ui-bundle.js');
    for (const path of loaded.filter((each) => each !== 'data:,')) {
      expect(path).toMatch(/^\/docs\/[\w.-]+$|^\/openapi\.json$/);
      const { status, headers } = await ask(path);
      expect([path, status, headers.get('X-Content-Type-Options')]).toEqual([path, 200, 'nosniff']);
    }
  });

  it('leads a browser without JavaScript to the OpenAPI document', async () => {
    const page = await (await ask('/docs')).text();
    expect(/<noscript>.*<\/noscript>/.exec(page)?.[0]).toContain('<a href="/openapi.json">');
  });

  it('is isolated by its headers', async () => {
    const { status, headers } = await ask('/docs');
    expect(status).toBe(200);
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy':
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; script-src 'self'; " +
        "style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'",
      'cache-control': 'private, no-cache',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
    });
  });

  it.each([
    ['the token of the demo account', 'dvt_x-Y_1', 'data-token="dvt_x-Y_1"'],
    ['no token if there is none', undefined, 'data-token=""'],
  ])('contains %s', async (_, token, written) => {
    // Only the members that the handler reads.
    const exchange = { request: { method: 'GET', headers: {} }, path: '/docs' } as unknown as Exchange;
    const { body } = await createDocs(() => token)(exchange);
    expect(String(body)).toContain(written);
  });
});

describe('a file of the reference', () => {
  it('has its media type; the script starts Swagger UI with the document of this gateway and no other host', async () => {
    for (const path of ['/docs/start.js', '/docs/swagger-ui-bundle.js'])
      expect((await ask(path)).headers.get('Content-Type')).toBe('text/javascript; charset=utf-8');
    const script = await (await ask('/docs/start.js')).text();
    const started: unknown[] = [];
    const preauthorized: unknown[] = [];
    const classes: unknown[] = [];
    const domNode = { dataset: { token: 'dvt_x' } };
    const ui = { preauthorizeApiKey: (...given: unknown[]) => preauthorized.push(given) };
    const page = {
      // The browser prefers dark colors.
      matchMedia: () => ({ matches: true, addEventListener() {} }),
      document: {
        documentElement: { classList: { toggle: (...given: unknown[]) => classes.push(given) } },
        getElementById: (id: string) => (id === 'reference' ? domNode : null),
      },
      SwaggerUIBundle(options: { onComplete(): void }) {
        started.push(options);
        // Swagger UI calls it later.
        queueMicrotask(options.onComplete);
        return ui;
      },
    };
    runInNewContext(script, page);
    await Promise.resolve();
    expect(started).toEqual([
      expect.objectContaining({ domNode, url: '/openapi.json', validatorUrl: null, tryItOutEnabled: true }),
    ]);
    expect(preauthorized).toEqual([['token', 'dvt_x']]);
    expect(classes).toEqual([['dark-mode', true]]);
  });

  it('is compressed with gzip if the client accepts that', async () => {
    for (const [accepted, encoding] of [
      ['gzip', 'gzip'],
      ['br, gzip;q=0.5', 'gzip'],
      ['GZIP', 'gzip'],
      ['gzip;q=0.001', 'gzip'],
      ['gzip ; q=0.000, br', null],
      ['gzip;q=0', null],
      ['gzip; q=0.0, br', null],
      ['identity', null],
    ] as const) {
      const { headers } = await ask('/docs/swagger-ui.css', { headers: { 'Accept-Encoding': accepted } });
      expect([accepted, headers.get('Content-Encoding')]).toEqual([accepted, encoding]);
      expect(headers.get('Content-Type')).toBe('text/css; charset=utf-8');
      expect(headers.get('Vary')).toBe('Accept-Encoding');
    }
  });

  it.each(['swagger-ui-bundle.js', 'swagger-ui.css'])('is that of the package: %s', async (name) => {
    for (const encoding of ['identity', 'br, gzip;q=0.8']) {
      const response = await ask(`/docs/${name}`, { headers: { 'Accept-Encoding': encoding } });
      expect(response.headers.get('Content-Encoding')).toBe(encoding === 'identity' ? null : 'gzip');
      expect(await response.text()).toBe(ofSwaggerUi(name));
    }
  });

  it.each(['/docs', '/docs/start.js', '/openapi.json'])(
    'is not sent again when nothing has changed: %s',
    async (path) => {
      const first = await ask(path);
      const again = await ask(path, { headers: { 'If-None-Match': first.headers.get('ETag') ?? '' } });
      expect([first.status, again.status]).toEqual([200, 304]);
      const plain = await ask(path, { headers: { 'Accept-Encoding': 'identity' } });
      expect(plain.headers.get('Vary')).toBe(path === '/docs' ? 'Accept-Encoding, Host' : 'Accept-Encoding');
    },
  );

  it('can only be requested with GET and HEAD, and other paths are not found', async () => {
    const head = await ask('/docs', { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
    for (const path of ['/docs', '/openapi.json']) {
      const post = await ask(path, { method: 'POST' });
      expect([post.status, post.headers.get('Allow'), await post.text()]).toEqual([
        405,
        'GET, HEAD',
        'Only GET and HEAD.\n',
      ]);
    }
    for (const path of ['/docs/', '/docs/package.json', '/docs/..%2fpackage.json', '/docs/constructor'])
      expect([path, (await ask(path)).status]).toEqual([path, 404]);
  });
});
