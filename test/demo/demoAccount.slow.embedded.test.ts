/** The demo account: how it is loaded, what it has, and its token. */

import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { createToken, findToken, listTokens, revokeToken } from '../../src/auth/tokens.ts';
import { setTier } from '../../src/auth/users.ts';
import { prepareDemo } from '../../src/demo/demoAccount.ts';
import { newFolder } from '../support/newFolder.ts';
import { databaseWith } from '../support/setUp.ts';

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
  return (await createToken(database.pool, 'coach', 'own')).token;
};

describe('the demo account', () => {
  it('has sessions, templates and lock sessions of every kind', async () => {
    await prepare(new Date('2026-02-17T12:00:00Z'));
    expect(
      await found(`SELECT count(*), count(passed), count(*) FILTER (WHERE passed), count(name), count("templateId"),
          count(DISTINCT "trainerId"), min("createdAt")::date::text, max("createdAt")::date::text
        FROM "DttSession" WHERE "ownerId" = ${demo}`),
    ).toEqual(['60 48 20 20 48 2 2025-02-19 2026-02-17']);
    expect(
      await found(`SELECT "totalPoints", "dttTotalReps", "dttTotalSessions" FROM "User" WHERE id = ${demo}`),
    ).toEqual(['28482 5519 60']);
    expect(
      await found(`SELECT name || ':', username, sum(duration * repeat), count(position),
          CASE t.id WHEN (SELECT "activeTemplateId" FROM "User" WHERE id = ${demo}) THEN 'active' END,
          (SELECT 'imported' FROM "DttLibraryEntry" WHERE "templateId" = t.id AND "userId" = ${demo} AND "importedAt" IS NOT NULL)
        FROM "DttTemplate" t JOIN "User" u ON u.id = "ownerId" LEFT JOIN "DttTemplateSegment" ON "templateId" = t.id
        GROUP BY t.id, username ORDER BY t.id`),
    ).toEqual([
      'Beginner Program: demo 960 2 active ',
      'Endurance: demo 1380 3  ',
      'Intervals: demo 360 1  ',
      'Coach’s Pick: coach 1260 2  imported',
      'Pyramid: longer and longer, and back again: demo 1200 9  ',
      'Sunday, draft: demo  0  ',
    ]);
    expect(
      await found(`SELECT "lockState", "isActive", t.name, "startDate"::date::text, max(s."createdAt")::date::text,
          string_agg(CASE WHEN "isLocked" THEN upper(s.type) ELSE s.type END, '/' ORDER BY s."createdAt")
        FROM "LockSession" l JOIN "LockSegment" s ON "sessionId" = l.id LEFT JOIN "LockTemplate" t ON t.id = "templateId"
        GROUP BY l.id, t.name ORDER BY l.id`),
    ).toEqual([
      'locked true Weekend Lock 2026-02-16 2026-02-17 START/break/LOCK',
      'completed false Weekend Lock 2026-01-25 2026-01-27 START/break/LOCK/end',
      'abandoned false Evening 2025-12-18 2025-12-18 START/break/LOCK/end',
      'break false Weekend Lock 2025-09-30 2025-10-01 START/break',
      'completed false  2025-03-02 2025-03-04 START/break/LOCK/end',
      'pending false Weekend Lock 2026-02-13 2026-02-13 created',
      'abandoned false One Week 2026-01-08 2026-01-11 START/break/LOCK/emergency',
    ]);
    expect(
      await found(`SELECT type, count(*), count(*) FILTER (WHERE passed), count(*) FILTER (WHERE NOT passed), min("percentGrade"),
          max("percentGrade"), count("repsTarget")
        FROM "TrainerSegment" GROUP BY type ORDER BY type`),
    ).toEqual([
      'bounce 60 47 13 37 93 60',
      'endurance 48 35 13 40 91 48',
      'freeform 36 0 0 29 91 0',
      'repetition 60 47 13 33 91 60',
    ]);
    expect(
      await found(`SELECT "serialNumber", "lastVisited"::date::text, max("createdAt")::date::text, count(s.id)
        FROM "DttDevice" d LEFT JOIN "DttSession" s ON "trainerId" = d.id GROUP BY d.id ORDER BY d.id`),
    ).toEqual(['1001 2026-02-17 2026-02-17 50', '1002 2026-01-02 2026-01-02 10', '1003   0']);
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
    ['has a token of another user', async () => writeFile(file, await tokenOfCoach())],
    ['was left half written', () => rm(file).then(() => writeFile(`${file}.new`, 'dvt_', { mode: 0o644 }))],
  ])('gets a new token when the file %s', async (_, harm) => {
    const before = await prepare();
    const own = await createToken(database.pool, 'demo', 'demo');
    await harm();
    const token = await prepare();
    expect(await viewerOf(token)).not.toBeNull();
    expect(await viewerOf(before)).toBeNull();
    expect(await viewerOf(own.token)).not.toBeNull();
    expect(await readFile(file, 'utf8')).toBe(`${token}\n`);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
  });

  it('gets no token when the stored one was revoked and the user has the maximum number of tokens', async () => {
    const token = await prepare();
    const { id } = (await findToken(database.sql, token ?? '')) ?? { id: 0 };
    await revokeToken(database.client, id);
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
