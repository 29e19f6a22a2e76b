/** The reference of the REST interface, as it is sent to a browser. */

import { afterAll, beforeAll, expect, it } from 'vitest';
import { openTestDatabase, openTestGateway, type TestGateway } from '../support/gateway.ts';
import { describeShipped } from '../support/openapiDocument.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await openTestGateway(await openTestDatabase(), { demoToken: 'dvt_x-Y_1' });
});
afterAll(() => gateway?.close());

const ask = (path: string, options?: RequestInit) => fetch(gateway.url + path, options);

it('the OpenAPI document describes the routes, and needs no token', async () => {
  const response = await ask('/openapi.json');
  expect(response.status).toBe(200);
  expect(response.headers.get('Content-Type')).toBe('application/json; charset=utf-8');
  expect(await response.json()).toEqual(JSON.parse(JSON.stringify(describeShipped())));
});

it('the page needs no token, has that of the demo account, and loads nothing from other hosts', async () => {
  const response = await ask('/docs');
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy':
      "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; script-src 'self'; " +
      "style-src 'self'; img-src 'self' data:; connect-src 'self'",
    'cache-control': 'private, no-cache',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
  });
  const page = await response.text();
  expect(page).toContain('data-token="dvt_x-Y_1"');
  // For a browser without JavaScript.
  expect(/<noscript>.*<\/noscript>/.exec(page)?.[0]).toContain('<a href="/openapi.json">');
  const loaded = [...page.matchAll(/(?:src|href)="(\/[^"]*)"/g)].map(([, path = '']) => path);
  expect(loaded).toContain('/docs/swagger-ui-bundle.js');
  for (const path of loaded) {
    expect(path).toMatch(/^\/docs\/[\w.-]+$|^\/openapi\.json$/);
    expect([path, (await ask(path)).status]).toEqual([path, 200]);
  }
});

it.each(['/docs', '/docs/start.js', '/openapi.json', '/schema.graphql', '/console'])(
  'a page or a file is not sent again when nothing has changed: %s',
  async (path) => {
    const first = await ask(path);
    const again = await ask(path, { headers: { 'If-None-Match': first.headers.get('ETag') ?? '' } });
    expect([first.status, again.status]).toEqual([200, 304]);
  },
);

it('other paths below are not found', async () => {
  for (const path of ['/docs/', '/docs/package.json', '/docs/..%2fpackage.json', '/docs/constructor'])
    expect([path, (await ask(path)).status]).toEqual([path, 404]);
});
