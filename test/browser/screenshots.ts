/**
 * `npx tsx test/browser/screenshots.ts`: the pictures of the console in `docs/images/console`: every view, wide and narrow, light and dark.
 * They show the demo account at a fixed time, so that a picture changes only when the console does.
 */

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { readConfig } from '../../src/config/config.ts';
import { openDatabase } from '../../src/database/database.ts';
import { prepareDemo } from '../../src/demo/demoAccount.ts';
import { openGateway } from '../../src/server/gateway.ts';
import { views } from './views.ts';

const target = 'docs/images/console';

/** The time at which the demo account is created, a Monday. The pictures are taken as if some minutes later. */
const now = new Date('2026-06-15T18:30:00Z');

/** The sizes of a screen: a picture does not show the whole of a long list. */
const sizes = [
  { size: 'wide', width: 1200, height: 900 },
  { size: 'narrow', width: 360, height: 780 },
];
const schemes = [
  { time: 'day', colorScheme: 'light' },
  { time: 'night', colorScheme: 'dark' },
] as const;

/** Starts a gateway with the demo account as it is at that time. */
async function startGateway(folder: string) {
  const config = readConfig({ DATA_DIR: folder, PORT: '0', LOG_LEVEL: 'silent' });
  const database = await openDatabase(config);
  await prepareDemo(database, folder, { now });
  await database.close();
  return openGateway(config);
}

/** Waits until the page has not changed for 400 ms: charts are rendered after their data has arrived. */
const settle = (page: Page) =>
  page.evaluate(
    () =>
      new Promise<void>((resolve) => {
        let timer = setTimeout(resolve, 400);
        new MutationObserver(() => {
          clearTimeout(timer);
          timer = setTimeout(resolve, 400);
        }).observe(document, { subtree: true, childList: true, attributes: true });
      }),
  );

async function takePicture(page: Page, name: string): Promise<void> {
  await settle(page);
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 80 });
  await session.detach();
  await writeFile(join(target, `${name}.webp`), Buffer.from(data, 'base64'));
}

async function takePictures(browser: Browser, url: string): Promise<void> {
  for (const { size, ...viewport } of sizes) {
    const context = await browser.newContext({
      viewport,
      locale: 'en-US',
      timezoneId: 'UTC',
      reducedMotion: 'reduce',
    });
    const page = await context.newPage();
    await page.clock.setFixedTime(now.getTime() + 1_043_000);
    await page.goto(`${url}/console`);
    const takeInEachScheme = async (name: string) => {
      for (const { time, colorScheme } of schemes) {
        await page.emulateMedia({ colorScheme });
        await takePicture(page, `${name}-${size}-${time}`);
      }
    };
    await takeInEachScheme('sign-in');
    await page.getByRole('button', { name: /demo account/ }).click();
    for (const [name, { path, title, shows }] of Object.entries(views)) {
      await page.goto(url + path);
      await page.getByRole('heading', { level: 1, name: title }).waitFor();
      await page.getByRole('main').getByText(shows).filter({ visible: true }).first().waitFor();
      await takeInEachScheme(name);
    }
    await context.close();
  }
}

const folder = await mkdtemp(join(tmpdir(), 'dovetail-screenshots-'));
const gateway = await startGateway(folder);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium' });
try {
  await rm(target, { recursive: true, force: true });
  await mkdir(target, { recursive: true });
  await takePictures(browser, gateway.url);
} finally {
  await browser.close();
  await gateway.close();
  await rm(folder, { recursive: true });
}
