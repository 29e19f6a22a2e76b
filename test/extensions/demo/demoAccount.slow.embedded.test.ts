/** The demo account: how it is loaded, what it has, and its token. */

import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { createToken, findToken, listTokens, revokeToken } from '../../../src/auth/tokens.ts';
import { setTier } from '../../../src/auth/users.ts';
import { prepareDemo } from '../../../src/extensions/demo/demoAccount.ts';
import { newFolder } from '../../support/newFolder.ts';
import { databaseWith } from '../../support/setUp.ts';

let folder: string;
let file: string;
const { database } = await databaseWith();
// Each Prisma client adds listeners to the pool.
database.pool.setMaxListeners(0);
beforeEach(async () => {
  folder = newFolder();
  file = join(folder, 'demo-token');
  // The account itself is not removed between tests, since loading it takes long.
  await database.client.apiToken.deleteMany();
});

const empty = () => database.pool.query('TRUNCATE "Mirror", "User" CASCADE');

const prepare = (now?: Date) => prepareDemo(database, folder, now);
const found = async (sql: string) => {
  const { rows } = await database.pool.query<string[]>({ text: sql, rowMode: 'array' });
  return rows.map((row) => row.join(' '));
};
const demo = `(SELECT id FROM "User" WHERE username = 'demo')`;
const viewerOf = async (token: string | undefined) => {
  const found = await findToken(database.sql, token ?? '');
  return found && { id: found.userId };
};
const tokenOfCoach = async () => {
  await setTier(database.client, 'coach', 'ultra');
  return (await createToken(database.pool, 'coach', 'demo-token')).token;
};

describe('the demo account', () => {
  it('has records of every kind, with the totals of its sessions and its sessions over a year', async () => {
    await prepare(new Date('2026-02-17T12:00:00Z'));
    const kinds = `
      SELECT string_agg(DISTINCT type::text, ' ' ORDER BY type::text) FROM "TrainerSegment"
      UNION ALL SELECT string_agg(DISTINCT "lockState", ' ' ORDER BY "lockState") FROM "LockSession"
      UNION ALL SELECT string_agg(DISTINCT coalesce(passed::text, 'unknown'), ' ') FROM "DttSession"
      UNION ALL SELECT count(*) FILTER (WHERE "importedAt" IS NULL) || ' own, ' || count("importedAt") || ' imported'
        FROM "DttLibraryEntry" WHERE "userId" = ${demo}
      UNION ALL SELECT name || ' is active' FROM "User" JOIN "DttTemplate" t ON t.id = "activeTemplateId" WHERE username = 'demo'
      UNION ALL SELECT min("createdAt")::date || ' to ' || max("createdAt")::date FROM "DttSession"`;
    expect(await found(kinds)).toEqual([
      'bounce endurance freeform repetition',
      'abandoned break completed locked pending',
      'false true unknown',
      '5 own, 1 imported',
      'Beginner Program is active',
      '2025-02-19 to 2026-02-17',
    ]);
    const sums = `SELECT sum(points), sum("repsMeasured"), count(DISTINCT "sessionId") FROM "TrainerSegment"`;
    const totals = `SELECT "totalPoints", "dttTotalReps", "dttTotalSessions" FROM "User" WHERE id = ${demo}`;
    expect(await found(totals)).toEqual(await found(sums));
  });

  it('has a history that ends at the time of loading', async () => {
    const times = (column: string, table: string) =>
      found(
        `SELECT to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS') FROM ${table} ORDER BY 1`,
      );
    const all = async () =>
      [
        ...(await times('"createdAt"', '"DttSession"')),
        ...(await times('"createdAt"', '"LockSegment"')),
        ...(await times('"lastVisited"', '"DttDevice" WHERE "lastVisited" IS NOT NULL')),
        ...(await times('"importedAt"', '"DttLibraryEntry" WHERE "importedAt" IS NOT NULL')),
        ...(await times('"updatedAt"', '"DttTemplate"')),
      ].map((text) => Date.parse(`${text}Z`));
    const loadAt = async (now: string) => {
      await empty();
      await prepare(new Date(now));
      return (await all()).map((time) => time - Date.parse(now));
    };
    // The history has the same distances in days to any time of loading, whatever months lie between.
    const before = await loadAt('2026-02-17T12:00:00.000Z');
    expect(await loadAt('2027-06-01T08:30:00.250Z')).toEqual(before);
    expect(Math.max(...before)).toBeLessThanOrEqual(0);
  });

  it('stores its token in a file that only its owner can read, and uses it again', async () => {
    const token = await prepare();
    expect(await readFile(file, 'utf8')).toBe(`${token}\n`);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readdir(folder)).toEqual(['demo-token']);
    const count = await database.client.dttSession.count();
    expect(await prepare()).toBe(token);
    expect(await database.client.dttSession.count()).toBe(count);
    expect(await listTokens(database.sql, 'demo')).toHaveLength(1);
  });

  it.each([
    ['was lost', () => rm(file)],
    ['is empty', () => writeFile(file, '')],
    ['has a token of another database', () => writeFile(file, `dvt_${'A'.repeat(43)}\n`)],
    ['has a token of another user', (ofCoach: string) => writeFile(file, ofCoach)],
    ['was left half written', () => rm(file).then(() => writeFile(`${file}.new`, 'dvt_', { mode: 0o644 }))],
  ])('gets a new token when the file %s', async (_, harm) => {
    const before = await prepare();
    const own = await createToken(database.pool, 'demo', 'demo');
    const ofCoach = await tokenOfCoach();
    await harm(ofCoach);
    const token = await prepare();
    expect(await viewerOf(token)).not.toBeNull();
    expect(await viewerOf(before)).toBeNull();
    for (const kept of [own.token, ofCoach]) expect(await viewerOf(kept)).not.toBeNull();
    expect(await readFile(file, 'utf8')).toBe(`${token}\n`);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
  });

  it('gets no token when the stored one was revoked and the user has the maximum number of tokens', async () => {
    const token = await prepare();
    const { id } = (await findToken(database.sql, token ?? '')) ?? { id: 0 };
    await revokeToken(database.pool, id);
    for (let count = 0; count < 5; count++) await createToken(database.pool, 'demo', `own ${count}`);
    expect(await prepare()).toBeUndefined();
  });

  it('is not added to a database that holds other data', async () => {
    await empty();
    onTestFinished(async () => void (await empty()));
    await database.client.user.create({ data: { username: 'alice' } });
    await writeFile(file, `dvt_${'A'.repeat(43)}\n`);
    expect(await prepare()).toBeUndefined();
    expect(await database.client.user.count()).toBe(1);
    expect(await readFile(file, 'utf8')).toMatch(/^dvt_A+\n$/);
  });
});
