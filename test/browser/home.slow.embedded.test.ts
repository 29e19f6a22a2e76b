import { expect, it, onTestFinished } from 'vitest';
import { openDemoGateway } from '../support/gateway.ts';
import { saveScreenshot, useBrowser } from './browser.ts';
import { overhang } from './console.ts';

const browser = useBrowser();

it('copies the demo token, and cuts off no line of code, also on a screen of 320 pixels', async () => {
  const gateway = await openDemoGateway();
  onTestFinished(gateway.close);
  const { page, complaints } = await browser.open(gateway.url, { viewport: { width: 320, height: 568 } });
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.getByRole('button', { name: 'Copy' }).first().click();
  await page.getByRole('button', { name: 'Copied' }).waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(gateway.token);
  const isCutOff = await page.$$eval('pre', (all) =>
    all.some(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth),
  );
  expect(isCutOff).toBe(false);
  expect(await overhang(page)).toBe(0);
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await saveScreenshot(page, `home-${colorScheme}`);
  }
  expect(complaints).toEqual([]);
});
