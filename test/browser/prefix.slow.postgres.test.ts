/** Everything that a browser is shown, behind proxies that serve the gateway below a path. */

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createToken } from '../../src/auth/tokens.ts';
import { freePort } from '../support/freePort.ts';
import { type DemoGateway, openDemoGateway, postJson } from '../support/gateway.ts';
import { demoGateway } from '../support/setUp.ts';
import { hasProxy, startProxy } from '../support/webProxy.ts';
import { type TabOptions, useBrowser } from './browser.ts';
import { expectView, signIn, signInToDemo } from './console.ts';

const browser = useBrowser();

describe.each(['nginx', 'haproxy'] as const)('behind %s', (proxy) => {
  let gateway: DemoGateway;
  let base = '';
  let close = async () => {};
  const isMissing = !hasProxy(proxy);
  beforeEach(({ skip }) => skip(isMissing, `${proxy} is not installed`));
  beforeAll(async () => {
    if (isMissing) return;
    const [port, own] = [await freePort(), await freePort()];
    base = `http://127.0.0.1:${port}/dovetail`;
    gateway = await openDemoGateway({
      port: own,
      settings: { PUBLIC_URL: base, TRUST_PROXY: '1', DEMO_ACCOUNT: 'public' },
    });
    ({ close } = await startProxy(proxy, port, own));
  });
  afterAll(async () => {
    await close();
    await gateway?.close();
  });

  /** What pages have requested outside of the path. */
  const strays: string[] = [];
  afterEach(() => expect(strays.splice(0)).toEqual([]));

  async function open(address: string, options: Pick<TabOptions, 'expected'> = {}) {
    const note = (url: string) => {
      if (url !== base && !url.replace(/^ws/, 'http').startsWith(`${base}/`) && !url.startsWith('data:'))
        strays.push(url);
    };
    const tab = await browser.open(base + address, {
      ...options,
      prepare: (page: Page) =>
        page.on('request', (request) => note(request.url())).on('websocket', (socket) => note(socket.url())),
    });
    return tab.page;
  }

  const activate = (id: number) =>
    postJson(gateway, gateway.token, `/dtt/templates/${id}`, { isActive: true });

  it('no link, file or request of any page leaves the path, and every link leads to something', async () => {
    const page = await open('/console', { expected: /404 \(Not Found\)/ });
    await signInToDemo(page);
    await expectView(page, { title: 'Overview', shows: 'Beginner Program' });
    const left = new Set<string>();
    const seen = new Set<string>();
    const waiting = [`${base}/`, `${base}/console`, `${base}/nothing/at/all`];
    // One page of each kind: an id or a filter makes no other links, and test/reading checks those of each guide.
    const kindOf = (url: string) =>
      url
        .replace(/[?#].*/, '')
        .replace(/\/\d+$/, '/1')
        .replace(/\/guides\/.*/, '/guides/…');
    for (let url = waiting.pop(); url; url = waiting.pop()) {
      seen.add(kindOf(url));
      const response = await page.goto(url);
      expect([url, response?.status()]).toEqual([url, url.includes('nothing') ? 404 : 200]);
      if (!response?.headers()['content-type']?.includes('html')) continue;
      await page.locator('h1:visible').first().waitFor();
      if (url.includes('/console')) await page.getByText('Loading…').first().waitFor({ state: 'hidden' });
      const found = await page.$$eval('[href], [src], form[data-base]', (all) =>
        all.map(
          (each) =>
            new URL(
              each.getAttribute('href') ?? each.getAttribute('src') ?? each.getAttribute('data-base') ?? '',
              document.baseURI,
            ).href,
        ),
      );
      expect(found.length).toBeGreaterThan(3);
      for (const each of found.filter((link) => new URL(link).origin === new URL(base).origin)) {
        if (!each.startsWith(`${base}/`)) left.add(`${each} on ${url}`);
        else if (!seen.has(kindOf(each)) && !/\/(assets\/|api\/v1)/.test(each)) {
          seen.add(kindOf(each));
          waiting.push(each);
        }
      }
    }
    expect([...left]).toEqual([]);
    expect([...seen].map((url) => url.slice(base.length))).toEqual(
      expect.arrayContaining([
        '/',
        '/console/programs/1',
        '/console/settings',
        '/graphql',
        '/schema',
        '/docs',
        '/openapi.json',
      ]),
    );
  });

  it('the home page is live, and its commands work', async () => {
    const page = await open('/');
    const program = () => page.locator('#program').textContent();
    await expect.poll(program, { timeout: 10_000 }).toBe('Beginner Program');
    await activate(2);
    await expect.poll(program, { timeout: 10_000 }).toBe('Endurance');
    await activate(1);
    const commands = (await page.locator('pre').allInnerTexts()).filter((text) => text.startsWith('curl'));
    const answers = await Promise.all(
      commands.map(async (command) => (await promisify(execFile)('sh', ['-c', command])).stdout),
    );
    expect(answers).toEqual([
      expect.stringContaining('"username":"demo"'),
      expect.stringContaining('"ok":true'),
    ]);
  });

  it('GraphiQL runs a query, and a subscription by an event stream', async () => {
    const query = 'subscription { viewer { activeDttTemplate { name } } }';
    const page = await open(`/graphql?query=${encodeURIComponent('{ viewer { username } }')}`);
    const runs = async (result: string) => {
      await page.locator('.graphiql-query-editor .CodeMirror-line').first().waitFor();
      await page.getByRole('button', { name: 'Execute query' }).click();
      await page.locator('.result-window').getByText(result).first().waitFor();
    };
    await runs('"demo"');
    await page.goto(`${base}/graphql?query=${encodeURIComponent(query)}`);
    await runs('"Beginner Program"');
    await activate(2);
    await page.locator('.result-window').getByText('"Endurance"').waitFor();
    await activate(1);
  });

  it('the console is live by its WebSocket', async () => {
    const { token } = await createToken(gateway.database.pool, 'demo', 'laptop', { scope: 'manage' });
    const page = await open('/console');
    const [socket] = await Promise.all([page.waitForEvent('websocket'), signIn(page, token)]);
    expect(socket.url()).toBe(`${base.replace('http', 'ws')}/graphql`);
    await expectView(page, { title: 'Overview', shows: 'Beginner Program' });
    await activate(2);
    await page.getByRole('main').getByText('Endurance').first().waitFor();
    await activate(1);
  });

  it('REST, its reference, its document and redirects have the path', async () => {
    const page = await open('/docs');
    const route = page.locator('#getActiveDttTemplate');
    await route.getByRole('button', { name: 'Send' }).click();
    await route.locator('output').getByText('"Beginner Program"').waitFor();
    const { servers } = await (await fetch(`${base}/openapi.json`)).json();
    const [{ url }] = servers;
    expect(url).toBe(`${base}/api/v1`);
    const headers = { Authorization: `Bearer ${gateway.token}` };
    expect((await fetch(new URL(`${url}/dtt/templates/active`, base), { headers })).status).toBe(200);
    const browserLike = { headers: { Accept: 'text/html' } };
    expect((await fetch(base, browserLike)).url).toBe(`${base}/`);
  });
});

it('the home page adds the slash that a proxy has not asked for', async () => {
  const gateway = await demoGateway();
  const { page } = await browser.open(`${gateway.url}/healthz`, { expected: /404 \(Not Found\)/ });
  const sent: string[] = [];
  page.on('request', (request) => sent.push(`${request.method()} ${new URL(request.url()).pathname}`));
  await page.route('**/dovetail', async (route) =>
    route.fulfill({ response: await route.fetch({ url: gateway.url }) }),
  );
  await page.goto(`${gateway.url}/dovetail`).catch(() => {});
  await page.waitForURL('**/dovetail/');
  expect(sent.filter((request) => request.startsWith('POST'))).toEqual([]);
});
