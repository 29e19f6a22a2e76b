import { afterAll, beforeAll, expect, it } from 'vitest';
import { allLinks } from '../../src/pages/home.ts';
import { type Account, createAccount } from '../support/accounts.ts';
import { openTestDatabase, openTestGateway, type TestGateway } from '../support/gateway.ts';
import { saveScreenshot, useBrowser } from './browser.ts';
import { overhang } from './console.ts';

const browser = useBrowser();
let gateway: TestGateway;
let alice: Account;
beforeAll(async () => {
  const database = await openTestDatabase();
  alice = await createAccount(database.client, 'alice');
  gateway = await openTestGateway(database, { demoToken: alice.token });
});
afterAll(() => gateway?.close());

it('has a link to each page, which responds with 200', async () => {
  const { page, complaints } = await browser.open(gateway.url);
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await saveScreenshot(page, `home-${colorScheme}`);
  }
  for (const { path, name } of allLinks) {
    const [response] = await Promise.all([
      page.waitForResponse(`${gateway.url}${path}`),
      page.getByRole('link', { name }).click(),
    ]);
    expect(response.status()).toBe(200);
    await page.goBack();
  }
  expect(complaints).toEqual([]);
});

it('copies the demo token, and cuts off no line of code, also on a screen of 320 pixels', async () => {
  const { page, complaints } = await browser.open(gateway.url, { viewport: { width: 320, height: 568 } });
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.getByRole('button', { name: 'Copy' }).first().click();
  await page.getByRole('button', { name: 'Copied' }).waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(alice.token);
  const isCutOff = await page.$$eval('pre', (all) =>
    all.some(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth),
  );
  expect(isCutOff).toBe(false);
  expect(await overhang(page)).toBe(0);
  expect(complaints).toEqual([]);
});
