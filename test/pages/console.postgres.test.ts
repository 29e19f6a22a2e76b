/** The console as it is sent to a browser: its policy, its files and their size, and the settings that turn it off. */

import { hash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { expect, it } from 'vitest';
import { newFolder } from '../support/newFolder.ts';
import { gatewayWith } from '../support/setUp.ts';

const folder = new URL('../../dist/console/', import.meta.url);
const assets = readdirSync(new URL('assets/', folder));
const readAsset = (name: string) => readFileSync(new URL(`assets/${name}`, folder));

const types = new Map([
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
]);

const { gateway } = await gatewayWith([], { shownToken: 'dvt_x-Y_1' });

const ask = (path: string, options?: RequestInit) => fetch(gateway.url + path, options);

it('the page is the same under the path of every view, and names the demo token, GraphiQL and the references', async () => {
  const page = await (await ask('/console')).text();
  for (const path of ['/console/', '/console/programs', '/console/history/1?by=week', '/console/nothing'])
    expect((await (await ask(path)).text()).replaceAll(/"(\.\.\/)+console/g, '"./console')).toBe(page);
  expect(page).toContain('data-demo-token="dvt_x-Y_1" data-graphiql="on" data-references="on"');
});

it.each([
  ['GRAPHIQL', 'data-graphiql="off" data-references="on"'],
  ['INTROSPECTION', 'data-graphiql="on" data-references="off"'],
])('the page says what there is with %s=off', async (name, said) => {
  const { gateway: other } = await gatewayWith([], { settings: { [name]: 'off' } });
  expect(await (await fetch(`${other.url}/console`)).text()).toContain(said);
});

it('the page loads only files of its own, which all exist, and has no inline styles, and one script: that of the theme', async () => {
  const response = await ask('/console');
  const page = await response.text();
  const [script = '', text = ''] = /<script>(.*?)<\/script>/s.exec(page) ?? [];
  const theme = `'sha256-${hash('sha256', text, 'base64')}'`;
  expect(response.headers.get('Content-Security-Policy')).toBe(
    `default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; script-src 'self' ${theme}; ` +
      "style-src 'self'; img-src 'self' data:; connect-src 'self'",
  );
  const loaded = [...page.matchAll(/<(?:script|link)[^>]*(?:src|href)="([^"]*)"/g)].map(
    ([, path = '']) => path,
  );
  expect(loaded.length).toBeGreaterThanOrEqual(3);
  for (const path of loaded) {
    expect(path).toMatch(/^\.\/console\/assets\/[\w-]+\.(js|css|svg)$/);
    expect([path, (await ask(path.slice(1))).status]).toEqual([path, 200]);
  }
  expect(page.replace(script, '')).not.toMatch(/<style|style=|<script(?![^>]*src=)|\son\w+=/);
});

it('the files are sent as they were built, compressed where the client accepts it, and may be cached forever', async () => {
  for (const name of assets)
    for (const encoding of ['identity', 'gzip']) {
      const response = await ask(`/console/assets/${name}`, { headers: { 'Accept-Encoding': encoding } });
      const file = readAsset(name);
      expect({ name, ...Object.fromEntries(response.headers) }).toMatchObject({
        name: expect.stringMatching(/-[\w-]{8}\.\w+$/),
        'cache-control': 'public, max-age=31536000, immutable',
        'content-type': types.get(extname(name)),
        vary: 'Accept-Encoding',
      });
      const compressed = encoding === 'gzip' && file.length >= 1024 ? 'gzip' : null;
      expect([name, response.headers.get('Content-Encoding')]).toEqual([name, compressed]);
      expect(Buffer.from(await response.arrayBuffer()).equals(file)).toBe(true);
    }
});

it.each([
  ['CONSOLE', 'off'],
  ['PERSISTED_OPERATIONS', 'only'],
])('with %s=%s there is no console, and no link to it', async (name, value) => {
  const persisted = join(newFolder(), 'persisted.json');
  await writeFile(persisted, '{}');
  const settings = { [name]: value, PERSISTED_OPERATIONS_FILE: persisted };
  const { gateway: without } = await gatewayWith([], { settings });
  for (const path of ['/console', '/console/history', `/console/assets/${assets[0]}`])
    expect([path, (await fetch(without.url + path)).status]).toEqual([path, 404]);
  for (const Accept of ['text/html', '*/*']) {
    const home = await (await fetch(without.url, { headers: { Accept } })).text();
    expect(home).toMatch(/readyz"?.*Readiness/);
    expect(home).not.toContain('/console');
    // Neither GraphiQL nor the query of the example is in a file of persisted operations.
    expect(home.includes('/graphql ') || home.includes('"/graphql"')).toBe(name === 'CONSOLE');
  }
});
