/** How the pages look, besides the console: accessible and no wider than the window, on a desktop and a telephone, by day and by night. */

import { afterAll, beforeAll, expect, it } from 'vitest';
import { type DemoGateway, openDemoGateway } from '../support/gateway.ts';
import { violationsOf } from './axe.ts';
import { saveScreenshot, useBrowser } from './browser.ts';
import { overhang } from './console.ts';

const browser = useBrowser();
let gateway: DemoGateway;
beforeAll(async () => {
  gateway = await openDemoGateway();
});
afterAll(() => gateway?.close());

const windows = [1280, 390, 360].flatMap((width) =>
  (['light', 'dark'] as const).map((colorScheme) => ({ width, colorScheme })),
);

it.each([
  { name: 'home', path: '/', shows: 'Beginner Program' },
  { name: 'rest', path: '/docs', shows: 'Users' },
  { name: 'schema', path: '/schema', shows: 'Queries' },
  { name: 'error', path: '/nothing', shows: 'Not Found' },
  { name: 'explorer', path: '/graphql', shows: 'dttDevices' },
])('$name is accessible, and no wider than any window', async ({ name, path, shows }) => {
  const { page, complaints } = await browser.open(gateway.url + path);
  await page.getByText(shows).first().waitFor();
  const problems: string[] = [];
  for (const { width, colorScheme } of windows) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await saveScreenshot(page, `${name}-${width}-${colorScheme}`);
    // The tree of GraphiQL is not ours.
    const found = await violationsOf(page, '.graphiql-container');
    const pixels = await overhang(page);
    if (pixels > 0) found.push(`${pixels} pixels wider than the window`);
    problems.push(...found.map((problem) => `${width}, ${colorScheme}: ${problem}`));
  }
  expect(problems).toEqual([]);
  expect(complaints.filter((text) => !text.includes('404 (Not Found)'))).toEqual([]);
});
