/** The settings of the console, where the account holder creates and revokes API tokens. */

import type { Page } from 'playwright-core';
import { beforeEach, expect, it } from 'vitest';
import type { Scope } from '../../src/auth/scopes.ts';
import { createToken } from '../../src/auth/tokens.ts';
import { graphqlOnce } from '../support/gateway.ts';
import { demoGateway, gatewayWith } from '../support/setUp.ts';
import { expectAccessible } from './axe.ts';
import { type Tab, type TabOptions, useBrowser } from './browser.ts';
import { expectView, signIn, signInToDemo } from './console.ts';

const browser = useBrowser();
const { gateway, alice } = await gatewayWith(['alice']);
beforeEach(async () => {
  await gateway.database.client.apiToken.deleteMany({ where: { userId: alice.userId } });
});

const create = async (name: string, scope: Scope) =>
  (await createToken(gateway.database.pool, 'alice', name, { scope })).token;

/** Opens the settings, signed in with a new token that has this scope. */
async function openSettings(scope: Scope, prepare?: TabOptions['prepare']): Promise<Tab & { token: string }> {
  const token = await create('laptop', scope);
  const permissions = ['clipboard-read', 'clipboard-write'];
  const tab = await browser.open(`${gateway.url}/console/settings`, { permissions, prepare });
  await signIn(tab.page, token);
  await expectView(tab.page, { title: 'Settings', shows: 'API tokens' });
  return { ...tab, token };
}

/** The memory of the page after garbage was collected, as text. */
async function heapOf(page: Page): Promise<string> {
  const session = await page.context().newCDPSession(page);
  const chunks: string[] = [];
  session.on('HeapProfiler.addHeapSnapshotChunk', ({ chunk }) => chunks.push(chunk));
  await session.send('HeapProfiler.collectGarbage');
  await session.send('HeapProfiler.takeHeapSnapshot');
  return chunks.join('');
}

const listed = (page: Page) => page.locator('.tokens h3').allInnerTexts();

it('creates a token with a scope and a last day, and shows and copies its secret once', async () => {
  const { page, token } = await openSettings('manage');
  await page.getByLabel('Name').fill('  CI ');
  await page.getByText('Also activate programs').click();
  await page.getByRole('button', { name: '30 days' }).click();
  const inDays = Date.parse(await page.getByLabel('Expires').inputValue()) - Date.now();
  expect(Math.round(inDays / 86_400_000)).toBeOneOf([29, 30, 31]);
  await page.getByLabel('Expires').fill('2999-01-31');
  await page.getByRole('button', { name: 'Create token' }).click();
  await page.getByRole('status').getByText('“CI” is created').waitFor();
  const secret = await page.getByLabel('Token CI').inputValue();
  await expectAccessible(page, 'console-secret');
  await page.getByRole('button', { name: 'Copy' }).click();
  await page.getByRole('button', { name: 'Copied' }).waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(secret);
  const query = '{ viewer { currentToken { name scopes expiresAt } } }';
  expect((await graphqlOnce(gateway, secret, query)).data).toEqual({
    viewer: { currentToken: { name: 'CI', scopes: ['READ', 'ACTIVATE'], expiresAt: expect.any(String) } },
  });

  expect((await heapOf(page)).includes(secret)).toBe(true);
  const kept = () =>
    page.evaluate(() => [location.href, JSON.stringify([localStorage, sessionStorage])].join());
  expect(await kept()).not.toContain(secret);
  expect(await kept()).toContain(token);
  await page.getByRole('button', { name: 'Done' }).click();
  await page.locator('[name=name]:focus').waitFor();
  expect((await heapOf(page)).includes(secret)).toBe(false);
  expect(await listed(page)).toEqual(['CI', 'laptop']);
  await page
    .locator('.tokens li', { hasText: 'CI' })
    .getByText(/Feb 1, 2999|Jan 31, 2999/)
    .waitFor();
});

it('does not show the secret of a token that is revoked', async () => {
  const { page } = await openSettings('manage');
  await page.getByLabel('Name').fill('CI');
  await page.getByRole('button', { name: 'Create token' }).click();
  await page.getByLabel('Token CI').waitFor();
  await page.getByRole('button', { name: 'Revoke CI' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await page.getByRole('status').getByText('“CI” is revoked.').waitFor();
  expect(await page.getByLabel('Token CI').count()).toBe(0);
});

it('shows at the form why a token was not created, keeps what was typed, and says the limit before it is met', async () => {
  const { page } = await openSettings('manage');
  await page.getByText('An account has 5 tokens at most').waitFor();
  const button = page.getByRole('button', { name: 'Create token' });
  await page.getByText('Also activate programs').click();
  for (const [name, day, message] of [
    ['', '', 'A token needs a name'],
    ['laptop', '2999-01-31', 'Another active token has the name "laptop"'],
    ['phone', '2020-01-31', 'must be in the future'],
  ] as const) {
    await page.getByLabel('Name').fill(name);
    await page.getByLabel('Expires').fill(day);
    await button.click();
    await page.getByRole('alert').getByText(message).waitFor();
    expect(await page.getByLabel('Name').inputValue()).toBe(name);
    expect(await page.getByLabel('Expires').inputValue()).toBe(day);
    expect(await page.getByRole('radio', { name: 'Activate' }).isChecked()).toBe(true);
  }
  await expectAccessible(page, 'console-settings-problem');
  for (const name of ['two', 'three', 'four']) await create(name, 'read');
  await page.getByLabel('Expires').fill('');
  await button.click();
  await page.getByRole('button', { name: 'Done' }).click();
  await page.getByText('You have five tokens. To create another, revoke one first.').waitFor();
  expect(await button.isDisabled()).toBe(true);
});

it('asks before it revokes a token, and signs out when that is its own', async () => {
  const { page } = await openSettings('manage', () => create('phone', 'read'));
  const dialog = page.getByRole('dialog');
  const ask = (name: string) => page.getByRole('button', { name: `Revoke ${name}` }).click();
  await ask('phone');
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await ask('phone');
  await expectAccessible(page, 'console-settings-question');
  await dialog.getByRole('button', { name: 'Revoke' }).click();
  await page.getByRole('status').getByText('“phone” is revoked.').waitFor();
  expect(await listed(page)).toEqual(['laptop']);
  await page.locator(':focus', { hasText: /^API tokens$/ }).waitFor();

  await page.locator('.tokens li', { hasText: 'laptop' }).getByText('Current').waitFor();
  await ask('laptop');
  await dialog.getByText('so you are signed out').waitFor();
  await dialog.getByRole('button', { name: 'Revoke' }).click();
  await page.getByLabel('API token').waitFor();
  expect(await page.getByRole('alert').count()).toBe(0);
  expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
});

it('says what revoking the demo token does, and offers the demo account no longer', async () => {
  const demo = await demoGateway();
  const { page } = await browser.open(`${demo.url}/console/settings`);
  await signInToDemo(page);
  await page.getByRole('button', { name: 'Revoke demo-token' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('A restart of the gateway makes another one.').waitFor();
  await dialog.getByRole('button', { name: 'Revoke' }).click();
  await page.getByLabel('API token').waitFor();
  expect(await page.getByRole('button', { name: /demo account/ }).count()).toBe(0);
  // The gateway hears of it a moment later.
  async function countAnew(): Promise<number> {
    await page.reload();
    await page.getByLabel('API token').waitFor();
    return page.getByRole('button', { name: /demo account/ }).count();
  }
  await expect.poll(countAnew).toBe(0);
});

/** Changes the results that the page gets over its WebSocket. */
const changeResults = (from: RegExp, to: string) => (page: Page) =>
  page.routeWebSocket(/\/graphql$/, (socket) => {
    const server = socket.connectToServer();
    server.onMessage((message) => socket.send(String(message).replace(from, to)));
  });

it.each([
  [
    'a token that cannot manage tokens',
    'activate',
    undefined,
    'You signed in with the token “laptop”, which cannot manage tokens',
  ],
  [
    'an account of an upstream',
    'manage',
    changeResults(/"apiTokens":\[.*?\],"currentToken":\{.*?\}/, '"apiTokens":[],"currentToken":null'),
    'Its tokens are made and revoked there',
  ],
] as const)('shows the settings without buttons to %s, and says why', async (_, scope, prepare, shows) => {
  const { page } = await openSettings(scope, prepare);
  await page.getByText(shows).waitFor();
  expect(await page.getByRole('main').getByRole('button').count()).toBe(0);
});

it('offers no form on a lower tier, and no activation to a token that can only read', async () => {
  const { page } = await openSettings('manage');
  await page.getByLabel('Name').waitFor();
  const { user } = gateway.database.client;
  const setTier = (subscriptionTier: string) =>
    user.update({ where: { id: alice.userId }, data: { subscriptionTier } });
  await setTier('basic');
  await page.getByText('Your tier is basic, so you cannot create one.').waitFor();
  expect(await page.getByLabel('Name').count()).toBe(0);
  await setTier('ultra');
  await page.getByLabel('Name').waitFor();

  const reading = await browser.open(`${gateway.url}/console/programs`);
  await signIn(reading.page, await create('phone', 'read'));
  await expectView(reading.page, { title: 'Programs', shows: 'Your token can only read.' });
  expect(await reading.page.getByRole('button', { name: /^Activate / }).count()).toBe(0);
});
