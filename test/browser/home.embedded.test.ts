import { afterAll, beforeAll, expect, it } from 'vitest';
import { places } from '../../src/pages/home.ts';
import { openTestGateway, type TestGateway } from '../support/gateway.ts';
import { keepScreenshot, useBrowser } from './browser.ts';

const browser = useBrowser();
let gateway: TestGateway;
beforeAll(async () => {
  gateway = await openTestGateway();
});
afterAll(() => gateway?.close());

it('leads to everything, by day and by night', async () => {
  const { page, complaints } = await browser.open(gateway.url);
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await keepScreenshot(page, `home-${colorScheme}`);
  }
  for (const { path, name } of places) {
    const [response] = await Promise.all([
      page.waitForResponse(`${gateway.url}${path}`),
      page.getByRole('link', { name }).click(),
    ]);
    expect(response.status()).toBe(200);
    await page.goBack();
  }
  expect(complaints).toEqual([]);
});
