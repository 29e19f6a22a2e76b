import { expect, it, onTestFinished } from 'vitest';
import { openDemoGateway, postJson } from '../support/gateway.ts';
import { useBrowser } from './browser.ts';
import { overhang } from './console.ts';

const browser = useBrowser();

it('shows the demo account live, runs a query, and copies the token, also on a screen of 320 pixels', async () => {
  const gateway = await openDemoGateway();
  onTestFinished(gateway.close);
  const { page, complaints } = await browser.open(gateway.url, { viewport: { width: 320, height: 568 } });
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  const program = () => page.locator('#program').textContent();
  await expect.poll(program).toBe('Beginner Program');
  // Another client activates another one.
  await postJson(gateway, gateway.token, '/dtt/templates/2', { isActive: true });
  await expect.poll(program).not.toBe('Beginner Program');
  await page.getByLabel('A query').fill('{ viewer { username } }');
  await page.getByRole('button', { name: 'Run' }).click();
  await expect.poll(() => page.getByLabel('Its response').inputValue()).toContain('"username": "demo"');
  await page
    .getByText('The token of the demo account')
    .locator('..')
    .getByRole('button', { name: 'Copy' })
    .click();
  await page.getByRole('button', { name: 'Copied' }).waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(gateway.token);
  const isCutOff = await page.$$eval('.copied > p + pre', (all) =>
    all.some(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth),
  );
  expect(isCutOff).toBe(false);
  expect(await overhang(page)).toBe(0);
  expect(complaints).toEqual([]);
});
