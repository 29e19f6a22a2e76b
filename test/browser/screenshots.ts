/**
 * `npx tsx test/browser/screenshots.ts`: the picture of the console in `docs/images/console`. It shows the demo account at a fixed
 * time, so that it changes only when the console does.
 */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { openDatabase } from '../../src/database/database.ts';
import { openGateway } from '../../src/server/gateway.ts';
import { loadDemo } from '../support/demo.ts';
import { readConfig } from '../support/settings.ts';
import { expectView, signInToDemo } from './console.ts';
import { views } from './views.ts';

/** The time at which the demo account is created, a Monday. The picture is taken as if some minutes later. */
const now = new Date('2026-06-15T18:30:00Z');

const folder = await mkdtemp(join(tmpdir(), 'dovetail-screenshots-'));
const config = readConfig({ DATA_DIR: folder, PORT: '0', LOG_LEVEL: 'silent' });
const database = await openDatabase(config);
await loadDemo(database, folder, now);
await database.close();
const gateway = await openGateway(config);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium' });
try {
  const page = await browser.newPage({
    viewport: { width: 1200, height: 900 },
    locale: 'en-US',
    timezoneId: 'UTC',
    reducedMotion: 'reduce',
  });
  await page.clock.setFixedTime(now.getTime() + 1_043_000);
  await page.goto(gateway.url + views.overview.path);
  await signInToDemo(page);
  await expectView(page, views.overview);
  // Charts are rendered after their data has arrived.
  await new Promise((settle) => setTimeout(settle, 1_000));
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 80 });
  await writeFile('docs/images/console/overview-wide-day.webp', Buffer.from(data, 'base64'));
} finally {
  await browser.close();
  await gateway.close();
  await rm(folder, { recursive: true });
}
