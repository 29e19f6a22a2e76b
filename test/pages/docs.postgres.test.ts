/** The reference of the REST interface, as it is sent to a browser. */

import { expect, it } from 'vitest';
import { routes } from '../../src/rest/routes.ts';
import { describeShipped } from '../support/openapiDocument.ts';
import { gatewayWith } from '../support/setUp.ts';

const { gateway } = await gatewayWith([], { demoToken: 'dvt_x-Y_1' });

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
    'content-encoding': 'gzip',
    vary: 'Accept-Encoding, Host',
    'content-security-policy': expect.stringMatching(
      /^default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; style-src 'sha256-\S+'; script-src 'sha256-\S+' 'sha256-\S+'; img-src data:; connect-src 'self'$/,
    ),
    'cache-control': 'private, no-cache',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'SAMEORIGIN',
  });
  const page = await response.text();
  expect(page).toContain('value="dvt_x-Y_1"');
  expect(page).not.toMatch(/ src=|\{\{|>undefined|"undefined/);
  const links = [...page.matchAll(/href="([^"#]*)"/g)].map(([, path = '']) => path);
  expect(links.filter((link) => !link.startsWith('data:'))).toEqual([
    ...['./', './console', './graphql', './schema', './docs', './guides', 'openapi.json'],
  ]);
  for (const [, record] of page.matchAll(/href="#([^"]*)"/g)) expect(page).toContain(`id="${record}"`);
});

it('the page describes each route, with an input for each parameter', async () => {
  const page = await (await ask('/docs')).text();
  for (const { method, path } of routes) {
    const [, form = ''] = page.split(`<form data-method="${method}" data-base="api/v1" data-path="${path}">`);
    const inputs = [...(form.split('</form>')[0] ?? '').matchAll(/data-in="path"/g)];
    expect([method, path, inputs.length]).toEqual([method, path, path.endsWith('{id}') ? 1 : 0]);
  }
});

it.each(['/docs', '/openapi.json', '/schema', '/schema.graphql', '/console'])(
  'a page or a file is not sent again when nothing has changed: %s',
  async (path) => {
    const first = await ask(path);
    const again = await ask(path, { headers: { 'If-None-Match': first.headers.get('ETag') ?? '' } });
    expect([first.status, again.status]).toEqual([200, 304]);
  },
);

it('other paths below are not found', async () => {
  for (const path of ['/docs/', '/docs/start.js', '/docs/..%2fpackage.json', '/docs/constructor'])
    expect([path, (await ask(path)).status]).toEqual([path, 404]);
});
