/** The console with accounts without records, with long words, and with sessions around a change of the clocks. */

import { afterAll, expect, it } from 'vitest';
import { createToken } from '../../src/auth/tokens.ts';
import { loadDemo } from '../support/demo.ts';
import { openTestDatabase, openTestGateway } from '../support/gateway.ts';
import { violationsOf } from './axe.ts';
import { saveScreenshot, useBrowser } from './browser.ts';
import { expectView, overhang, signIn } from './console.ts';

/** Around a day of 23 hours in Berlin: in the last second before it, in its first and last second, around the change, and in the first second after it. */
const changeOfClocks = [
  '2026-03-28T22:59:59Z',
  '2026-03-28T23:00:00Z',
  '2026-03-29T00:59:59Z',
  '2026-03-29T01:00:00Z',
  '2026-03-29T21:59:59Z',
  '2026-03-29T22:00:00Z',
];

/** Text without a space, which an upstream may have in any field of text. */
const longWord = 'w'.repeat(200);

const browser = useBrowser();
/** A token for each account: without records, with long words, and with sessions around changes of the clocks. */
const tokens: Record<string, string> = {};
const database = await openTestDatabase();
// The demo account is the one with long words.
await loadDemo(database);
for (const table of ['DttTemplate', 'DttSession', 'LockSession'])
  await database.pool.query(`UPDATE "${table}" SET name = $1`, [longWord]);
await database.pool.query(`UPDATE "DttDevice" SET "serialNumber" = $1`, [longWord]);
await database.pool.query(`
  INSERT INTO "User" (username, "subscriptionTier")
    VALUES ('nobody', 'ultra'), ('traveller', 'ultra');
  INSERT INTO "DttSession" ("bubbleId", "ownerId", "createdAt", "goneTrainerId")
    SELECT 't' || at, id, at, 1 FROM "User", unnest('{${changeOfClocks.join()}}'::timestamptz[]) at
    WHERE username = 'traveller';
  INSERT INTO "TrainerSegment" ("sessionId", type, "order", passed, "percentGrade", points, "repsMeasured", "durationMeasured", "createdAt")
    SELECT id, 'repetition', 0, passed, id % 100, id % 50, 20, 60, "createdAt" FROM "DttSession"
    WHERE "ownerId" = (SELECT id FROM "User" WHERE username = 'traveller')`);
for (const username of ['nobody', 'demo', 'traveller'])
  tokens[username] = (await createToken(database.pool, username, 'test')).token;
const gateway = await openTestGateway(database);
afterAll(() => gateway.close());

it('says in each view of an empty account that there are no records yet', async () => {
  const { page } = await browser.open(`${gateway.url}/console`, {
    viewport: { width: 360, height: 800 },
  });
  await signIn(page, tokens.nobody ?? '');
  for (const [path, title, shows] of [
    ['/console', 'Overview', 'No program is active'],
    ['/console/programs', 'Programs', 'no programs yet'],
    ['/console/programs/1', 'No such program', 'There is none with this number'],
    ['/console/history', 'History', 'no sessions yet'],
    ['/console/history/1', 'No such session', 'There is none with this number'],
    ['/console/locks', 'Locks', 'No lock session yet'],
    ['/console/locks/1', 'No such lock session', 'There is none with this number'],
    ['/console/nothing', 'Not found', 'overview'],
  ] as const) {
    await page.goto(gateway.url + path);
    await expectView(page, { title, shows });
    await saveScreenshot(page, `console-empty${path.replaceAll('/', '-')}`);
    const [pixels, violations] = [await overhang(page), await violationsOf(page)];
    expect({ path, pixels, violations }).toEqual({ path, pixels: 0, violations: [] });
  }
});

it('breaks words that are wider than the window', async () => {
  const { page } = await browser.open(`${gateway.url}/console`);
  await signIn(page, tokens.demo ?? '');
  const overhangs: [path: string, width: number, pixels: number][] = [];
  for (const [path, title] of [
    ['/console', 'Overview'],
    ['/console/programs', 'Programs'],
    ['/console/programs/1', longWord],
    ['/console/history', 'History'],
    ['/console/history/1', longWord],
    ['/console/locks', 'Locks'],
    ['/console/locks/1', longWord],
  ] as const) {
    await page.goto(gateway.url + path);
    await expectView(page, { title, shows: longWord });
    for (const width of [1200, 700, 360]) {
      await page.setViewportSize({ width, height: 900 });
      const pixels = await overhang(page);
      if (pixels > 0) overhangs.push([path, width, pixels]);
    }
  }
  expect(overhangs).toEqual([]);
});

it('shows days and times in the time zone and the format of the browser when the clocks change', async () => {
  const berlin = { locale: 'de-DE', timezoneId: 'Europe/Berlin' };
  const history = `${gateway.url}/console/history?from=2026-03-28&to=2026-03-30`;
  const { page } = await browser.open(history, berlin);
  await signIn(page, tokens.traveller ?? '');
  await expectView(page, { title: 'History', shows: '6 sessions' });
  const numbers = page.locator('details', { hasText: 'Show the numbers as a table' });
  await numbers.locator('summary').click();
  expect(await numbers.locator('tbody tr td:nth-of-type(1)').allInnerTexts()).toEqual(['1', '4', '1']);

  await page.goto(`${gateway.url}/console/history?from=2026-03-29&to=2026-03-29`);
  await expectView(page, { title: 'History', shows: '4 sessions' });
  const shown = await page.getByRole('region', { name: 'Sessions' }).locator('time').allInnerTexts();
  // Newest first; at 2 o'clock the clocks went forward to 3 o'clock.
  expect(shown.map((text) => text.replaceAll(/\s/g, ' '))).toEqual([
    '29 Mar 2026, 23:59',
    '29 Mar 2026, 03:00',
    '29 Mar 2026, 01:59',
    '29 Mar 2026, 00:00',
  ]);
});
