/** The REST reference in a browser that opens it for the first time. */

import { afterAll, beforeAll, expect, it } from 'vitest';
import { type DemoGateway, openDemoGateway } from '../support/gateway.ts';
import { saveScreenshot, useBrowser } from './browser.ts';

const browser = useBrowser();
let gateway: DemoGateway;
beforeAll(async () => {
  gateway = await openDemoGateway();
});
afterAll(() => gateway?.close());

it('executes a route with the demo token, which is filled in already', async () => {
  const { page, complaints } = await browser.open(`${gateway.url}/docs`);
  const route = page.locator('.opblock', {
    has: page.locator('[data-path="/dtt/templates/active"]'),
  });
  await route.locator('.opblock-summary-control').click();
  await route.getByRole('button', { name: 'Execute' }).click();
  const response = route.locator('.live-responses-table');
  await response.getByText('"Beginner Program"').waitFor();
  expect(await response.locator('tbody td.response-col_status').innerText()).toMatch(/^200/);
  await response.scrollIntoViewIfNeeded();
  await page.getByText('The token of the demo account is filled in').waitFor();
  await saveScreenshot(page, 'docs');
  expect(complaints).toEqual([]);
});
