/** The reference of the REST interface, as it is sent to a browser. */

import type { OperationObject } from 'openapi3-ts/oas31';
import { expect, it } from 'vitest';
import { messages } from '../../src/errors.ts';
import { ambiguities } from '../../src/http/request.ts';
import { routes } from '../../src/rest/routes.ts';
import { pageErrors } from '../../src/schema/loading/pagination.ts';
import { describeShipped } from '../support/openapiDocument.ts';
import { gatewayWith } from '../support/setUp.ts';

const { gateway } = await gatewayWith([], { shownToken: 'dvt_x-Y_1' });

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

/** The entry of each operation. */
async function entriesOf(path: string): Promise<ReadonlyMap<string, string>> {
  const page = await (await ask(path)).text();
  return new Map(
    page.split(/<(?:form|article) class="entry/).map((part) => [/id="([^"]*)"/.exec(part)?.[1] ?? '', part]),
  );
}

it('the page describes each route: an input for each parameter, the fields, and the messages of each status', async () => {
  const entries = await entriesOf('/docs');
  const document = describeShipped();
  for (const { method, path, name } of routes) {
    const entry = entries.get(name) ?? '';
    expect(entry).toContain(`data-method="${method}" data-base="api/v1" data-path="${path}"`);
    const operation: OperationObject = document.paths?.[path]?.[method === 'GET' ? 'get' : 'post'] ?? {};
    const inputs = [...entry.matchAll(/data-in="(path|query|header)"/g)];
    expect([path, inputs.length]).toEqual([path, operation.parameters?.length]);
    for (const [status, response] of Object.entries(operation.responses ?? {})) {
      const shared = document.components?.responses?.[response.$ref?.replace(/.*\//, '')];
      const content = ('content' in response ? response : shared)?.content?.['application/json'];
      if (status !== '200') expect(entry).toContain(`<b>${status}</b> `);
      for (const message of Object.keys(content?.examples ?? {}))
        expect(entry).toContain(`<code>${message}</code>`);
    }
  }
  expect(entries.get('getDttSession')).toMatch(
    /<code>TrainerSegment<\/code>.*Fields of TrainerSegment.*<code>percentGrade</s,
  );
});

it('the page folds the messages that every route has, and asks for what its samples ask for', async () => {
  const entries = await entriesOf('/docs');
  const list = entries.get('listDttDevices') ?? '';
  const [open = '', folded = ''] = list.split('<summary>As on every route</summary>');
  const shown = open.slice(open.indexOf('Other statuses'));
  expect([...shown.matchAll(/<code>([^<]*)</g)].map(([, message]) => message)).toEqual([
    pageErrors.size('limit'),
    pageErrors.offset,
  ]);
  for (const message of [messages.invalidId, messages.wrongPosition, ...Object.values(ambiguities)])
    expect(folded).toContain(`<code>${message}</code>`);
  expect(list).toContain('/api/v1/dtt?limit=1&#x27;');
  expect(list).toContain('<input name="limit" data-in="query" value="1"');
  expect(entries.get('activateDttTemplate')).toContain(
    'Send it with <code>Content-Type: application/json</code>',
  );
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
  for (const path of ['/docs/start.js', '/docs/..%2fpackage.json', '/docs/constructor'])
    expect([path, (await ask(path)).status]).toEqual([path, 404]);
});
