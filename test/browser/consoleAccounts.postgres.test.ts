/** The console with nothing to show, and with very much of it. */

import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { createToken } from '../../src/auth/tokens.ts';
import { openTestDatabase, openTestGateway, type TestGateway } from '../support/gateway.ts';
import { violationsOf } from './axe.ts';
import { keepScreenshot, useBrowser } from './browser.ts';
import { expectView, overhang, signIn } from './console.ts';

vi.setConfig({ testTimeout: 90_000 });

const browser = useBrowser();
let gateway: TestGateway;
/** The tokens of who has nothing, and of who has trained for ten years. */
let tokens: Record<'nobody' | 'veteran', string>;
beforeAll(async () => {
  const database = await openTestDatabase();
  await database.pool.query(`
    INSERT INTO "User" (username, "subscriptionTier") VALUES ('nobody', 'ultra'), ('veteran', 'ultra');
    INSERT INTO "DttTemplate" ("bubbleId", "ownerId", name, "targetDepth", "targetWindow")
      SELECT 'p' || n, u.id, 'Program ' || n, 50, 10 FROM "User" u, generate_series(1, 300) n WHERE username = 'veteran';
    INSERT INTO "DttDevice" ("bubbleId", "ownerId", "macAddress")
      SELECT 'd', id, '02:00:00:00:00:01' FROM "User" WHERE username = 'veteran';
    INSERT INTO "DttSession" ("bubbleId", "ownerId", "createdAt", passed, "trainerId", "templateId")
      SELECT 's' || n, d."ownerId", now() - n * interval '52 minutes', n % 3 > 0, d.id, t.id
      FROM generate_series(1, 100000) n, "DttDevice" d, (SELECT min(id) AS id FROM "DttTemplate") t;
    INSERT INTO "TrainerSegment" ("sessionId", type, "order", passed, "percentGrade", points, "repsMeasured", "durationMeasured", "createdAt")
      SELECT id, 'repetition', 0, passed, id % 100, id % 50, 20, 60, "createdAt" FROM "DttSession";
    INSERT INTO "LockSession" ("bubbleId", "publicId", "ownerId", name, "lockState", duration, "startDate", "createdAt")
      SELECT 'l' || n, 'L' || n, u.id, 'Lock ' || n, 'completed', 3600, at, at
      FROM generate_series(1, 5000) n, "User" u, LATERAL (SELECT now() - n * interval '17 hours' AS at) WHERE username = 'veteran';
    ANALYZE`);
  const of = async (username: string) => (await createToken(database.pool, username, 'test')).token;
  tokens = { nobody: await of('nobody'), veteran: await of('veteran') };
  gateway = await openTestGateway(database);
});
afterAll(() => gateway?.close());

it('says in an empty account what would be where', async () => {
  const { page, complaints } = await browser.open(`${gateway.url}/console`, {
    viewport: { width: 360, height: 800 },
  });
  await signIn(page, tokens.nobody);
  for (const [path, title, shows] of [
    ['/console', 'Overview', 'No program is active'],
    ['/console/programs', 'Programs', 'no programs yet'],
    ['/console/programs/1', 'No such program', 'There is none with this number'],
    ['/console/history', 'History', 'no sessions yet'],
    ['/console/history/1', /session/i, 'There is no session 1 of yours'],
    ['/console/locks', 'Locks', 'as soon as the account has one'],
    ['/console/locks/1', /lock session/i, 'There is no such lock session'],
    ['/console/locks/none', /lock session/i, 'There is no such lock session'],
    ['/console/nothing', 'Nothing is here', 'overview'],
  ] as const) {
    await page.goto(gateway.url + path);
    await expectView(page, { title, shows });
    await keepScreenshot(page, `console-empty${path.replaceAll('/', '-')}`);
    const [pixels, violations] = [await overhang(page), await violationsOf(page)];
    expect({ path, pixels, violations, complaints }).toEqual({
      path,
      pixels: 0,
      violations: [],
      complaints: [],
    });
  }
});

it('is as quick with 100,000 sessions', async () => {
  const { page, complaints } = await browser.open(`${gateway.url}/console`);
  await signIn(page, tokens.veteran);
  const took: string[] = [];
  for (const [path, title, shows] of [
    ['/console', 'Overview', /session/i],
    ['/console/programs', 'Programs', 'Program 300'],
    ['/console/history?last=all', 'History', '100,000'],
    ['/console/locks', 'Locks', 'Lock 1'],
  ] as const) {
    const start = performance.now();
    await page.goto(gateway.url + path);
    await expectView(page, { title, shows });
    took.push(`${path} ${Math.round(performance.now() - start)} ms`);
    await keepScreenshot(page, `console-many${new URL(page.url()).pathname.replaceAll('/', '-')}`);
    expect(await overhang(page)).toBe(0);
    // What a page draws does not grow with what there is.
    expect(await page.locator('main *').count()).toBeLessThan(6_000);
  }
  process.stdout.write(`with 100,000 sessions: ${took.join(', ')}\n`);
  expect(complaints).toEqual([]);
});
