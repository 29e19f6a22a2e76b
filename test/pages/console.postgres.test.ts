/** The console, as a browser gets it: what it may load, what it weighs, and where it is not. */

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

describe('the page', () => {
  it('may run its own scripts, ask its own gateway, and nothing else', async () => {
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

  it('loads files of its own, each of which is there, and has no code or style in it', async () => {
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
    ['the demo account', 'dvt_x-Y_1', true, 'data-demo-token="dvt_x-Y_1" data-graphiql="on"'],
    ['no account that it knows of', undefined, false, 'data-demo-token="" data-graphiql="off"'],
  ])(
    'has at hand the token of %s, and says whether there is a GraphiQL',
    async (_, token, hasGraphiql, written) => {
      // What the handler reads of a request.
      const exchange = { request: { method: 'GET', headers: {} }, path: '/console' } as unknown as Exchange;
      const { body } = await createConsole({ demoTokenFor: () => token, hasGraphiql })(exchange);
      expect(String(body)).toContain(written);
    },
  );

  it('has no token for who asks under a name that anybody can point here', async () => {
    const exchange = { request: { method: 'GET', headers: {} }, path: '/console' } as unknown as Exchange;
    let token: string | undefined = 'dvt_x';
    const handle = createConsole({ demoTokenFor: () => token, hasGraphiql: true });
    expect(String((await handle(exchange)).body)).toContain('dvt_x');
    token = undefined;
    expect(String((await handle(exchange)).body)).not.toContain('dvt_x');
  });
});

describe('its files', () => {
  it('never change, and are what was built', async () => {
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

  it('weigh at most 120 kB of JavaScript, compressed, and the first view a part of that', async () => {
    const weigh = (names: readonly string[]) =>
      names.reduce((sum, name) => sum + gzipSync(readAsset(name)).length, 0);
    const scripts = assets.filter((name) => name.endsWith('.js'));
    const page = readFileSync(new URL('index.html', folder), 'utf8');
    const first = scripts.filter((name) => page.includes(name));
    expect(first.length).toBeGreaterThan(0);
    expect(first.length).toBeLessThan(scripts.length);
    expect(weigh(scripts)).toBeLessThanOrEqual(120_000);
    expect(weigh(first)).toBeLessThan(weigh(scripts));
  });

  it('name no other host but in what libraries say to developers, and hold no data in an address', () => {
    const texts = assets.filter((name) => extname(name) !== '.svg').map((name) => readAsset(name).toString());
    const urls = texts.flatMap((text) => text.match(/https?:\/\/[^\s"'`\\)]+/g) ?? []);
    const known = /^https?:\/\/(www\.w3\.org\/|github\.com\/preactjs\/|bit\.ly\/2XbVrpR#)/;
    expect(urls.filter((url) => !known.test(url))).toEqual([]);
    expect(texts.flatMap((text) => text.match(/url\(\s*["']?(data:|\/\/)/g) ?? [])).toEqual([]);
  });
});

it.each(['/console', `/console/assets/${assets[0]}`])(
  'is sent again only if it changed: %s',
  async (path) => {
    const first = await ask(path);
    const again = await ask(path, { headers: { 'If-None-Match': first.headers.get('ETag') ?? '' } });
    expect([first.status, again.status]).toEqual([200, 304]);
    const plain = await ask(path, { headers: { 'Accept-Encoding': 'identity' } });
    expect(plain.headers.get('Vary')).toBe(path === '/console' ? 'Accept-Encoding, Host' : 'Accept-Encoding');
  },
);

it('can be read and nothing else', async () => {
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

describe('where it is switched off', () => {
  let persisted: string;
  beforeAll(async () => {
    persisted = join(await mkdtemp(join(tmpdir(), 'dovetail-console-')), 'persisted.json');
    await writeFile(persisted, '{}');
  });
  afterAll(() => rm(dirname(persisted), { recursive: true }));

  it.each([
    ['CONSOLE', 'off'],
    ['PERSISTED_OPERATIONS', 'only'],
  ])('is nowhere, and nothing leads to it, with %s=%s', async (name, value) => {
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
