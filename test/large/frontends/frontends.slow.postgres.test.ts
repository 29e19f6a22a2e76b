/** The pages of docs/clients.md in a real browser: each list and activation, and each subscription through an outage. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { Page, Request, Route, WebSocket } from 'playwright-core';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { createToken, revokeToken } from '../../../src/auth/tokens.ts';
import { useBrowser as inBrowser, type TabOptions } from '../../browser/browser.ts';
import { setActive } from '../../support/accounts.ts';
import { freePort } from '../../support/freePort.ts';
import { addPassedSessions } from '../../support/passedSessions.ts';
import { endProcesses, serve } from '../../support/processes.ts';
import { gatewayBeside, gatewayWith } from '../../support/setUp.ts';
import { apps, livePages, servePages, trusted } from './pages.ts';

// Longer than the outages take, for a machine with much else to do.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 });

// Biome takes a function whose name begins with `use` for one of React's hooks.
const browser = inBrowser();
const pages = await servePages();
const { gateway, database, alice } = await gatewayWith(['alice'], {
  settings: { CORS_ORIGINS: pages.origin },
});
/** The names of the sessions that were passed, oldest first: more than two pages of 10. */
const passed = await addPassedSessions(database.client, alice);
afterEach(endProcesses);
afterAll(() => pages?.close());

/** Activates one of alice's programs in the database, without the page. */
const activateElsewhere = (index: 0 | 1 | 2) => setActive(database.client, alice, index);

interface OpenOptions extends Pick<TabOptions, 'expected'> {
  readonly url?: string;
  readonly token?: string;
}

/** Opens a page, and records its operations. */
async function open(
  name: string,
  { url = gateway.url, token = alice.token, ...options }: OpenOptions = {},
  prepare = (_: Page) => {},
) {
  const sent: Record<string, string>[] = [];
  const sockets: WebSocket[] = [];
  const tab = await browser.open(pages.address(name, url, token), {
    ...options,
    others: [url],
    prepare(page) {
      page.on('websocket', (socket) => sockets.push(socket));
      page.on('request', (request) => {
        if (request.url().startsWith(`${url}/graphql`) && request.method() !== 'OPTIONS')
          sent.push(parametersOf(request));
      });
      return prepare(page);
    },
  });
  return { ...tab, sent, attempts: () => sent.length + sockets.length };
}

const parametersOf = (request: Request) =>
  request.postDataJSON() ?? Object.fromEntries(new URL(request.url()).searchParams);

/** The names of the programs that a page shows as active. */
const activeOn = (page: Page) => page.locator('[aria-pressed=true]').allTextContents();
const program = (index: number) => `Program ${index} of alice`;
/** How every page marks an active program. */
const marked = (index: number) => `✓ ${program(index)}`;
const expectActive = (page: Page, index: number) =>
  expect.poll(() => activeOn(page)).toEqual([marked(index)]);
const alertOf = (page: Page) => page.getByRole('alert').getByText(/./);

describe.each(Object.keys(apps))('%s', (name) => {
  it('joins three pages of a filtered and sorted list', async () => {
    const { page } = await open(name);
    const more = page.getByRole('button', { name: 'More' });
    for (const count of [10, 20]) {
      await expect.poll(() => page.locator('li').allTextContents()).toEqual(passed.slice(0, count));
      await more.click();
    }
    await expect.poll(() => page.locator('li').allTextContents()).toEqual(passed);
    expect(await more.isDisabled()).toBe(true);
  });

  it('shows an activation at once, and needs no other query for it', async () => {
    await activateElsewhere(0);
    const { page, sent } = await open(name);
    await expectActive(page, 0);
    let respond = () => {};
    const response = new Promise<void>((resolve) => {
      respond = resolve;
    });
    await page.route('**/graphql', (route) => response.then(() => route.fallback()));
    const before = sent.length;
    await page.getByText(program(1)).click();
    await expectActive(page, 1);
    respond();
    await expect
      .poll(() => database.client.user.findUnique({ where: { id: alice.userId } }))
      .toMatchObject({ activeTemplateId: alice.dttTemplates[1] });
    await sleep(500);
    await expectActive(page, 1);
    for (const { operationName } of sent.slice(before)) expect(operationName).toMatch(/Activat/);
  });

  it('takes back an activation that fails, and shows the code of the error', async () => {
    await activateElsewhere(0);
    const { page } = await open(name, { expected: /./ });
    await expectActive(page, 0);
    const missing = Buffer.from('DttTemplate:999').toString('base64url');
    await page.route('**/graphql', (route) =>
      route.fallback({
        postData: route
          .request()
          .postData()
          ?.replace(/"id":"[^"]+"/, `"id":"${missing}"`),
      }),
    );
    await page.getByText(program(1)).click();
    await alertOf(page).getByText('NOT_FOUND').waitFor();
    await expectActive(page, 0);
  });
});

it.each(['urql', 'Apollo Client'])(
  '%s sends the text of a query once, and its hash from then on',
  async (name) => {
    const first = await open(name);
    await expect.poll(() => activeOn(first.page)).toHaveLength(1);
    await first.page.close();
    const { page, sent } = await open(name);
    await expect.poll(() => activeOn(page)).toHaveLength(1);
    const queries = sent.filter(({ operationName }) => operationName !== 'TemplatesNow');
    expect(queries.map(({ query }) => query)).toEqual([undefined, undefined]);
  },
);

it.each(Object.keys(trusted))('%s runs on a gateway that accepts nothing else', async (name) => {
  await activateElsewhere(0);
  const only = await gatewayBeside(database, {
    settings: {
      CORS_ORIGINS: pages.origin,
      PERSISTED_OPERATIONS_FILE: pages.manifest,
      PERSISTED_OPERATIONS: 'only',
    },
  });
  const { page } = await open(name, only);
  await expectActive(page, 0);
  await activateElsewhere(2);
  await expectActive(page, 2);
  await page.getByText(program(1)).click();
  await expectActive(page, 1);
  await page.close();
});

/** Opens all pages with a subscription, each in a tab. */
const openAll = (options: OpenOptions) =>
  Promise.all(
    Object.keys(livePages).map(async (name) => ({
      name,
      ...(await open(name, { expected: /./, ...options })),
    })),
  );

const attemptsOf = (tabs: Awaited<ReturnType<typeof openAll>>) =>
  tabs.map(({ name, attempts }) => `${name}: ${attempts()}`);

/** Fails unless each page says that its token is not valid, and asks no more. */
async function expectRejected(tabs: Awaited<ReturnType<typeof openAll>>) {
  const shown = tabs.map(async ({ name, page }) => {
    const alert = alertOf(page).getByText(/UNAUTHENTICATED|unknown or revoked/);
    return alert.waitFor({ timeout: 20_000 }).then(
      () => [],
      () => name,
    );
  });
  expect((await Promise.all(shown)).flat(), 'pages that do not say so').toEqual([]);
  const before = attemptsOf(tabs);
  await sleep(2_000);
  expect(attemptsOf(tabs)).toEqual(before);
}

it('every page says that a token is wrong, and does not try again', async () => {
  const tabs = await openAll({ token: 'wrong' });
  await expectRejected(tabs);
  // Two operations and the subscription, of which some are sent by their hash before their text.
  for (const { name, attempts } of tabs) expect(attempts(), name).toBeLessThanOrEqual(5);
});

it('every page ends with an error when its token is revoked', async () => {
  await activateElsewhere(0);
  const { id, token } = await createToken(database.pool, 'alice', 'revoked');
  const tabs = await openAll({ token });
  for (const { page } of tabs) await expectActive(page, 0);
  await activateElsewhere(1);
  for (const { page } of tabs) await expectActive(page, 1);
  const before = attemptsOf(tabs);
  await revokeToken(database.pool, id);
  await expectRejected(tabs);
  expect(attemptsOf(tabs)).toEqual(before);
});

it.each(['urql', 'Apollo Client', 'fetch'])(
  '%s tries again while the gateway has no database',
  async (name) => {
    await activateElsewhere(0);
    let rejected = 0;
    const away = async (route: Route) => {
      const request = route.request();
      if (request.method() === 'OPTIONS') return route.fallback();
      rejected += 1;
      const result = JSON.stringify({
        errors: [{ message: 'Away', extensions: { code: 'SERVICE_UNAVAILABLE' } }],
      });
      const isStream = (await request.headerValue('Accept')) === 'text/event-stream';
      return route.fulfill({
        status: 503,
        headers: { 'Access-Control-Allow-Origin': pages.origin },
        contentType: isStream ? 'text/event-stream' : 'application/graphql-response+json',
        body: isStream ? `event: next\ndata: ${result}\n\nevent: complete\ndata:\n\n` : result,
      });
    };
    const { page } = await open(name, { expected: /./ }, (tab) => tab.route('**/graphql*', away));
    await expect.poll(() => rejected).toBeGreaterThan(3);
    await page.unroute('**/graphql*');
    await expectActive(page, 0);
    await activateElsewhere(2);
    await expectActive(page, 2);
    expect(await alertOf(page).count()).toBe(0);
  },
);

/** In milliseconds: how soon a page has to show what has changed, once the gateway is back. */
const longestDelay = 15_000;

it('every page is live again after a short and a long outage, however the gateway ended', async () => {
  await activateElsewhere(0);
  const settings = {
    DATABASE_URL: database.pool.options.connectionString ?? '',
    PORT: String(await freePort()),
    CORS_ORIGINS: pages.origin,
    RATE_LIMIT: '1000000000',
    RATE_LIMIT_ANONYMOUS: '1000000000',
  };
  let own = await serve(settings);
  const tabs = await openAll({ url: own.url });
  const expectAll = (index: number) => Promise.all(tabs.map(({ page }) => expectActive(page, index)));
  await expectAll(0);
  for (const [signal, seconds] of [
    ['SIGTERM', 2],
    ['SIGKILL', 12],
  ] as const) {
    own.child.kill(signal);
    await own.exit;
    await activateElsewhere(1);
    await sleep(seconds * 1_000);
    for (const { page } of tabs) expect(await activeOn(page)).toEqual([marked(0)]);

    own = await serve(settings);
    const start = Date.now();
    const delays = tabs.map(async ({ name, page }) => {
      await expectActive(page, 1).catch(() => {});
      return [name, Date.now() - start] as const;
    });
    const late = (await Promise.all(delays)).filter(([, delay]) => delay > longestDelay);
    expect(late, `after ${signal} and ${seconds} seconds`).toEqual([]);
    // They receive later changes as well, and show no error any more.
    await activateElsewhere(0);
    await expectAll(0);
    for (const { page } of tabs) expect(await alertOf(page).count()).toBe(0);
  }
});
