/** The references and the OpenAPI document as they are sent. The build has made the pages. */

import { expect, it } from 'vitest';
import { shippedDocument } from '../support/openapiDocument.ts';
import { gatewayBeside, gatewayWith } from '../support/setUp.ts';

const { gateway, database } = await gatewayWith([], { shownToken: 'dvt_x-Y_1' });

const ask = (path: string, options?: RequestInit) => fetch(gateway.url + path, options);

it('the OpenAPI document describes the routes, and needs no token', async () => {
  const response = await ask('/openapi.json');
  expect(response.status).toBe(200);
  expect(response.headers.get('Content-Type')).toBe('application/json; charset=utf-8');
  expect(await response.json()).toEqual(shippedDocument);
});

it('the page needs no token, has that of the demo account, and loads nothing from other hosts', async () => {
  const response = await ask('/docs');
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'content-encoding': 'gzip',
    vary: 'Accept-Encoding, Host',
    'content-security-policy': expect.stringMatching(
      /^default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; style-src 'sha256-\S+'; script-src 'sha256-\S+' 'sha256-\S+' 'sha256-\S+' 'sha256-\S+'; img-src data:; connect-src 'self'$/,
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

it('both are what the settings make them: the address of the routes, links to pages that exist, and no token of another', async () => {
  const other = await gatewayBeside(database, {
    settings: { PUBLIC_URL: 'https://home.example/dovetail', GRAPHIQL: 'off' },
  });
  const { servers } = await (await fetch(`${other.url}/openapi.json`)).json();
  expect(servers).toEqual([{ ...shippedDocument.servers?.[0], url: 'https://home.example/dovetail/api/v1' }]);
  const [here, there] = await Promise.all(
    [gateway, other].map(async ({ url }) => (await fetch(`${url}/schema`)).text()),
  );
  expect(here).toContain('Open in GraphiQL</a>');
  expect(there).not.toContain('GraphiQL');
  expect(there).toContain('<input id="token" autocomplete="off" spellcheck="false" value="">');
});

it.each(['/docs', '/openapi.json', '/schema', '/schema.graphql', '/console'])(
  'a page or a file is not sent again when nothing has changed: %s',
  async (path) => {
    const first = await ask(path);
    const again = await ask(path, { headers: { 'If-None-Match': first.headers.get('ETag') ?? '' } });
    expect([first.status, again.status]).toEqual([200, 304]);
  },
);
