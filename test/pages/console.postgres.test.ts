/** The console as it is sent to a browser: its policy, its files and their size, and the settings that turn it off. */

import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, extname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Exchange } from '../../src/http/exchange.ts';
import { createConsole } from '../../src/pages/console.ts';
import { createAccount } from '../support/accounts.ts';
import { openTestDatabase, openTestGateway, type TestGateway } from '../support/gateway.ts';

const folder = new URL('../../dist/console/', import.meta.url);
const assets = readdirSync(new URL('assets/', folder));
const readAsset = (name: string) => readFileSync(new URL(`assets/${name}`, folder));

const types = new Map([
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
]);

let gateway: TestGateway;
beforeAll(async () => {
  const database = await openTestDatabase();
  const { token } = await createAccount(database.client, 'alice');
  gateway = await openTestGateway(database, { demoToken: token });
});
afterAll(() => gateway?.close());

const ask = (path: string, options?: RequestInit) => fetch(gateway.url + path, options);

describe('the page of the console', () => {
  it('has a policy that allows only its own scripts and its own gateway', async () => {
    const { status, headers } = await ask('/console');
    expect(status).toBe(200);
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy':
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; script-src 'self'; " +
        "style-src 'self'; img-src 'self'; connect-src 'self'",
      'cache-control': 'private, no-cache',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
    });
  });

  it('is the same under the path of every view', async () => {
    const page = await (await ask('/console')).text();
    for (const path of ['/console/', '/console/programs', '/console/history/1?by=week', '/console/nothing'])
      expect(await (await ask(path)).text()).toBe(page);
  });

  it('loads only files of its own, which all exist, and has no inline scripts or styles', async () => {
    const page = await (await ask('/console')).text();
    const loaded = [...page.matchAll(/<(?:script|link)[^>]*(?:src|href)="([^"]*)"/g)].map(
      ([, path = '']) => path,
    );
    expect(loaded.length).toBeGreaterThanOrEqual(3);
    for (const path of loaded) {
      expect(path).toMatch(/^\/console\/assets\/[\w-]+\.(js|css|svg)$/);
      expect([path, (await ask(path)).status]).toEqual([path, 200]);
    }
    expect(page).not.toMatch(/<style|style=|<script(?![^>]*src=)|\son\w+=/);
  });

  it.each([
    ['the token of the demo account', 'dvt_x-Y_1', true, 'data-demo-token="dvt_x-Y_1" data-graphiql="on"'],
    ['no token if there is none', undefined, false, 'data-demo-token="" data-graphiql="off"'],
  ])('contains %s, and whether GraphiQL is on', async (_, token, hasGraphiql, written) => {
    // Only the members that the handler reads.
    const exchange = { request: { method: 'GET', headers: {} }, path: '/console' } as unknown as Exchange;
    const { body } = await createConsole({ demoTokenFor: () => token, hasGraphiql })(exchange);
    expect(String(body)).toContain(written);
  });

  it('has the token only for requests that it may be shown to, even after it was shown', async () => {
    const exchange = { request: { method: 'GET', headers: {} }, path: '/console' } as unknown as Exchange;
    let token: string | undefined = 'dvt_x';
    const handle = createConsole({ demoTokenFor: () => token, hasGraphiql: true });
    expect(String((await handle(exchange)).body)).toContain('dvt_x');
    token = undefined;
    expect(String((await handle(exchange)).body)).not.toContain('dvt_x');
  });
});

describe('the files of the console', () => {
  it('are sent as they were built, and may be cached forever', async () => {
    for (const name of assets)
      for (const encoding of ['identity', 'gzip']) {
        const response = await ask(`/console/assets/${name}`, { headers: { 'Accept-Encoding': encoding } });
        expect({ name, ...Object.fromEntries(response.headers) }).toMatchObject({
          name: expect.stringMatching(/-[\w-]{8}\.\w+$/),
          'cache-control': 'public, max-age=31536000, immutable',
          'content-type': types.get(extname(name)),
          vary: 'Accept-Encoding',
          'x-content-type-options': 'nosniff',
        });
        expect(response.headers.get('Content-Encoding')).toBe(encoding === 'gzip' ? 'gzip' : null);
        expect(Buffer.from(await response.arrayBuffer()).equals(readAsset(name))).toBe(true);
      }
  });

  it('have at most 120 kB of compressed JavaScript, of which the first view loads only a part', async () => {
    const sizeOf = (names: readonly string[]) =>
      names.reduce((sum, name) => sum + gzipSync(readAsset(name)).length, 0);
    const scripts = assets.filter((name) => name.endsWith('.js'));
    const page = readFileSync(new URL('index.html', folder), 'utf8');
    const first = scripts.filter((name) => page.includes(name));
    expect(first.length).toBeGreaterThan(0);
    expect(first.length).toBeLessThan(scripts.length);
    expect(sizeOf(scripts)).toBeLessThanOrEqual(120_000);
    expect(sizeOf(first)).toBeLessThan(sizeOf(scripts));
  });

  it('have no URLs of other hosts except in messages of libraries, and no data URLs', () => {
    const texts = assets.filter((name) => extname(name) !== '.svg').map((name) => readAsset(name).toString());
    const urls = texts.flatMap((text) => text.match(/https?:\/\/[^\s"'`\\)]+/g) ?? []);
    const known = /^https?:\/\/(www\.w3\.org\/|github\.com\/preactjs\/|bit\.ly\/2XbVrpR#)/;
    expect(urls.filter((url) => !known.test(url))).toEqual([]);
    expect(texts.flatMap((text) => text.match(/url\(\s*["']?(data:|\/\/)/g) ?? [])).toEqual([]);
  });
});

it.each(['/console', `/console/assets/${assets[0]}`])(
  'a conditional request gets 304 when nothing has changed: %s',
  async (path) => {
    const first = await ask(path);
    const again = await ask(path, { headers: { 'If-None-Match': first.headers.get('ETag') ?? '' } });
    expect([first.status, again.status]).toEqual([200, 304]);
    const plain = await ask(path, { headers: { 'Accept-Encoding': 'identity' } });
    expect(plain.headers.get('Vary')).toBe(path === '/console' ? 'Accept-Encoding, Host' : 'Accept-Encoding');
  },
);

it('the paths of the console accept only GET and HEAD, and other paths are not found', async () => {
  for (const path of ['/console', '/console/history', `/console/assets/${assets[0]}`]) {
    const head = await ask(path, { method: 'HEAD' });
    expect([path, head.status, await head.text()]).toEqual([path, 200, '']);
    const post = await ask(path, { method: 'POST' });
    expect([post.status, post.headers.get('Allow'), await post.text()]).toEqual([
      405,
      'GET, HEAD',
      'Only GET and HEAD.\n',
    ]);
  }
  const others = ['/console/assets/', '/console/assets/x.js', '/console/assets/..%2findex.html', '/consoles'];
  for (const path of others) expect([path, (await ask(path)).status]).toEqual([path, 404]);
});

describe('a gateway without the console', () => {
  let persisted: string;
  beforeAll(async () => {
    persisted = join(await mkdtemp(join(tmpdir(), 'dovetail-console-')), 'persisted.json');
    await writeFile(persisted, '{}');
  });
  afterAll(() => rm(dirname(persisted), { recursive: true }));

  it.each([
    ['CONSOLE', 'off'],
    ['PERSISTED_OPERATIONS', 'only'],
  ])('responds 404 to its paths, and has no link to it, with %s=%s', async (name, value) => {
    const settings = { [name]: value, PERSISTED_OPERATIONS_FILE: persisted };
    const without = await openTestGateway(undefined, { settings });
    try {
      for (const path of ['/console', '/console/', '/console/history', `/console/assets/${assets[0]}`])
        expect([path, (await fetch(without.url + path)).status]).toEqual([path, 404]);
      for (const Accept of ['text/html', '*/*']) {
        const home = await (await fetch(without.url, { headers: { Accept } })).text();
        expect(home).toContain('/readyz');
        expect(home).not.toContain('/console');
      }
    } finally {
      await without.close();
    }
  });
});
