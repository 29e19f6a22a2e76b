/** The migration of a database of 0.1.0 with every kind of row that is not valid any more: what each of them becomes. */

import { cp, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { askDatabase } from '../../src/cli/doctor/connection.ts';
import { migrate, readRepairs } from '../../src/database/migrate.ts';
import { openTestDatabase, type TestDatabase } from '../support/gateway.ts';

/** The migration that repairs rows, and those after it. */
const repairing = '20261121190000_model_as_it_stays';
const newer = [
  repairing,
  '20261121220000_mirrored_accounts',
  '20261122100000_announce_either_way',
  '20261122200000_announce_owners_inline',
  '20261123000000_mirrored_writes',
  '20261123010000_listed_digest',
  '20261123060000_announce_replicated_entries',
  '20261124000000_announce_updates_by_row',
];

let database: TestDatabase;
let released: string;
beforeAll(async () => {
  database = await openTestDatabase();
  released = await mkdtemp(join(tmpdir(), 'dovetail-released-'));
  for (const entry of await readdir('prisma/migrations', { withFileTypes: true }))
    if (entry.isDirectory() && entry.name < repairing)
      await cp(join('prisma/migrations', entry.name), join(released, entry.name), { recursive: true });
});
afterAll(async () => {
  await rm(released, { recursive: true, force: true });
  await database?.close();
});
beforeEach(async () => {
  await database.pool.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public');
  await migrate(database.pool.options, pathToFileURL(`${released}/`));
});

/** Migrates the database. The repairs that it and `dovetail doctor` report before have to be those that it reports after. */
async function upgrade(): Promise<string[]> {
  const client = new pg.Client(database.pool.options);
  await client.connect();
  const before = await readRepairs(client);
  await client.end();
  const findings = await askDatabase(database.pool.options, 'the database', undefined);
  expect(findings.filter(({ check }) => check === 'repairs').map(({ says }) => says)).toEqual(
    before.map((repair) => `${repairing} finds ${repair}`),
  );
  const after: string[] = [];
  const repaired = (repair: string) => void after.push(repair);
  expect(await migrate(database.pool.options, undefined, { repaired })).toEqual(newer);
  expect(after).toEqual(before);
  return before;
}

/** The rows of a query, each as a line. */
async function lines(sql: string): Promise<string[]> {
  const { rows } = await database.pool.query({ text: sql, rowMode: 'array' });
  return rows.map((row: unknown[]) => row.map(String).join(' '));
}

const user = 'INSERT INTO "User" (id, username';
const template = 'INSERT INTO "DttTemplate" (id, "bubbleId", "ownerId", name, "targetDepth", "targetWindow")';
const session = 'INSERT INTO "DttSession" (id, "bubbleId", "ownerId", "trainerId", "templateId")';
const segment = 'INSERT INTO "TrainerSegment" (id, "sessionId", type, "order"';
const duplicates = 'usernames that differ in case alone, of which the later gets its id behind it';
const blanks = 'blank names, which become the kind of record and its id';

describe('a database of 0.1.0', () => {
  it('is migrated with invalid rows of every kind, and each repair is reported before and after', async () => {
    await database.pool.query(`
      ${user}, "subscriptionTier", league) VALUES (1, 'Alice', 'ultra', -1), (2, 'alice', 'free', 1), (3, ' ', 'free', 1);
      INSERT INTO "ApiToken" (id, "userId", name, digest, "lastUsedAt", "revokedAt")
        SELECT n, 1, CASE n WHEN 1 THEN '' ELSE 'token' END, CASE n WHEN 9 THEN '\\x00' ELSE sha256(n::text::bytea) END,
               timestamptz '2026-01-01Z' + n * interval '1 day', CASE n WHEN 8 THEN now() END FROM generate_series(1, 9) n;
      INSERT INTO "DttDevice" (id, "bubbleId", "ownerId", "macAddress", "apiHits") VALUES
        (1, '1', 1, '02:00:00:00:00:0A', 5), (2, '2', 1, '02-00-00-00-00-0b', -5), (3, '3', 2, 'none', 1);
      INSERT INTO "LkbxDevice" (id, "bubbleId", "ownerId", "macAddress", "hueShift") VALUES (1, '1', 1, '0200.0000.000c', 'NaN');
      INSERT INTO "OssmDevice" (id, "bubbleId", "ownerId", "macAddress", chip) VALUES (1, '1', 1, '', 'x');
      ${template} VALUES (1, '1', 1, 'One', 'NaN', 'Infinity'), (2, '2', 1, '', 50, 10), (3, '3', 2, 'Three', 50, 10), (4, '4', 2, 'Four', 1, 1);
      INSERT INTO "DttTemplateSegment" (id, "templateId", position, type, duration, repeat) VALUES
        (1, 1, 0, 'a', 60, 1), (2, 1, -3, 'b', -60, -1), (3, 2, 4, 'c', 60, 1);
      INSERT INTO "DttTemplateImport" ("userId", "templateId", "importedAt") VALUES (1, 1, 'epoch'), (1, 3, 'epoch');
      UPDATE "User" SET "activeTemplateId" = 4 WHERE id = 1;
      UPDATE "User" SET "activeTemplateId" = 3 WHERE id = 2;
      ${session} VALUES (1, '1', 1, 1, 4), (2, '2', 1, 3, NULL);
      ${segment}, "percentGrade", "durationMeasured", "speedMeasured", "distanceTravelled") VALUES
        (1, 1, 'bounce', 1, 100.5, -1, 'NaN', '-Infinity'), (2, 1, 'endurance', 1, 50, 1, 1.5, 2), (3, 2, 'bounce', 5, NULL, 1, 1, 1);
      INSERT INTO "LockTemplate" (id, "ownerId", name, duration, "breakRegularity") VALUES (1, 1, E'\\t', -1, -1), (2, 2, 'Two', 60, 60);
      INSERT INTO "LockSession" (id, "bubbleId", "publicId", "ownerId", "lockState", duration, "isActive", "templateId") VALUES
        (1, '1', '1', 1, 'completed', -60, true, 2), (2, '2', '2', 1, 'locked', 60, false, 1), (3, '3', '3', 2, 'locked', 60, true, 2);`);
    expect(await upgrade()).toMatchInlineSnapshot(`
      [
        "usernames that differ in case alone, of which the later gets its id behind it: 1",
        "blank names, which become the kind of record and its id: 4",
        "tokens whose digest is not one, so that nothing can be asked with them, which are deleted: 1",
        "tokens in use beyond a user's five, of which the ones used longest ago are revoked: 2",
        "users with a number below 0, which becomes null: 1",
        "users whose active template is none of theirs, so that they have no active one: 1",
        "imports of one's own template, which are no imports any more: 1",
        "MAC addresses that are put into upper case with colons: 2",
        "MAC addresses that are none, which become null: 2",
        "devices with a number of requests below 0, which becomes null: 1",
        "templates, lockboxes and their parts with a number that makes no sense, which becomes 0: 5",
        "template segments and lock templates with a number below 0, which becomes null: 2",
        "templates with a segment at a place below 0, whose segments are numbered anew: 1",
        "results of training with a number that makes no sense, which becomes null: 1",
        "sessions of which two segments have one place, or one has a place below 0, whose segments are numbered anew: 1",
        "sessions on a device of somebody else, which name it by a number alone: 1",
        "lock sessions from a template of somebody else, which name none any more: 1",
        "lock sessions that are over and say that they are active, which say so no more: 1",
      ]
    `);

    expect(
      await lines(
        'SELECT id, username, league, "activeTemplateId", "subscriptionTier" FROM "User" ORDER BY id',
      ),
    ).toEqual(['1 Alice null null ultra', '2 alice-2 1 3 free', '3 user-3 1 null free']);
    // The five tokens that were used last stay active. The others are revoked, and so is the one that was revoked before.
    expect(
      await lines(
        'SELECT id, name, slot, "revokedAt" IS NULL FROM "ApiToken" ORDER BY "revokedAt" IS NULL, id',
      ),
    ).toEqual([
      '1 token 1 2 false',
      '2 token 1 false',
      '8 token 1 false',
      '3 token 5 true',
      '4 token 4 true',
      '5 token 3 true',
      '6 token 2 true',
      '7 token 1 true',
    ]);
    expect(
      await lines(`SELECT "macAddress", number FROM (
             SELECT 1 AS kind, id, "macAddress", "apiHits" AS number FROM "DttDevice"
             UNION ALL SELECT 2, id, "macAddress", "hueShift" FROM "LkbxDevice"
             UNION ALL SELECT 3, id, "macAddress", NULL FROM "OssmDevice") AS device ORDER BY kind, id`),
    ).toEqual([
      '02:00:00:00:00:0A 5',
      '02:00:00:00:00:0B null',
      'null 1',
      '02:00:00:00:00:0C 0',
      'null null',
    ]);
    expect(
      await lines('SELECT id, name, "targetDepth", "targetWindow" FROM "DttTemplate" ORDER BY id'),
    ).toEqual(['1 One 0 0', '2 template 2 50 10', '3 Three 50 10', '4 Four 1 1']);
    expect(
      await lines('SELECT id, position, duration, repeat FROM "DttTemplateSegment" ORDER BY id'),
    ).toEqual(['1 1 60 1', '2 0 0 null', '3 4 60 1']);
    expect(
      await lines('SELECT "userId", "templateId", "importedAt" IS NULL FROM "DttLibraryEntry" ORDER BY 1, 2'),
    ).toEqual(['1 1 true', '1 2 true', '1 3 false', '2 3 true', '2 4 true']);
    expect(
      await lines(
        'SELECT id, "trainerId", "goneTrainerId", "templateId", "goneTemplateId" FROM "DttSession" ORDER BY id',
      ),
    ).toEqual(['1 1 null 4 null', '2 null 3 null null']);
    expect(
      await lines(`SELECT id, type, "order", "percentGrade", "durationMeasured", "speedMeasured", "distanceTravelled"
                   FROM "TrainerSegment" ORDER BY id`),
    ).toEqual(['1 bounce 0 null null null null', '2 endurance 1 50 1 1.5 2', '3 bounce 5 null 1 1 1']);
    expect(
      await lines('SELECT id, name, duration, "breakRegularity" FROM "LockTemplate" ORDER BY id'),
    ).toEqual(['1 lock template 1 0 null', '2 Two 60 60']);
    expect(
      await lines(
        'SELECT id, duration, "isActive", "templateId", "endDate", "createdAt" FROM "LockSession" ORDER BY id',
      ),
    ).toEqual(['1 0 false null null null', '2 60 false 1 null null', '3 60 true 2 null null']);
  });

  it('that mirrors an account loses its placeholders for unknown records and values', async () => {
    await database.pool.query(`
      ${user}, "subscriptionTier", rank) VALUES (7, 'alice', 'ultra', 3), (0, 'upstream-user-0', 'free', 0), (9, 'upstream-user-9', 'free', 0);
      INSERT INTO "Mirror" (source, "userId") VALUES ('https://example.com', 7);
      INSERT INTO "DttDevice" (id, "bubbleId", "ownerId", "macAddress", "apiHits") VALUES
        (1, '1', 7, '02:00:00:00:00:0A', 0), (2, 'upstream-dtt-2', 0, '', 0);
      ${template} VALUES (1, '1', 7, 'Own', 1, 1), (2, '2', 9, 'Imported', 1, 1), (3, 'upstream-template-3', 0, '', 0, 0);
      INSERT INTO "DttTemplateImport" ("userId", "templateId") VALUES (7, 2);
      UPDATE "User" SET "activeTemplateId" = 2 WHERE id = 7;
      ${session} VALUES (1, '1', 7, 1, 1), (2, '2', 7, 2, 3), (3, '3', 7, 1, 2);`);
    expect(await upgrade()).toMatchInlineSnapshot(`
      [
        "users that stood for owners upstream, whose templates now name the owner by a number alone: 2",
        "devices that stood for ones that are not here, which sessions now name by a number alone: 1",
        "templates that stood for ones that are not here, which sessions now name by a number alone: 1",
        "mirrored accounts, in which defaults become null until the next refresh, since nobody was told them: 1",
      ]
    `);
    expect(
      await lines(
        'SELECT id, username, "accountType", rank, "totalPoints", "scheduleType", "activeTemplateId" FROM "User"',
      ),
    ).toEqual(['7 alice null 3 null null 2']);
    expect(await lines('SELECT id, "apiHits", "createdDate" FROM "DttDevice"')).toEqual(['1 null null']);
    expect(await lines('SELECT id, "ownerId", "foreignOwnerId" FROM "DttTemplate" ORDER BY id')).toEqual([
      '1 7 null',
      '2 null 9',
    ]);
    expect(
      await lines(
        'SELECT id, "trainerId", "goneTrainerId", "templateId", "goneTemplateId" FROM "DttSession" ORDER BY id',
      ),
    ).toEqual(['1 1 null 1 null', '2 null 2 null 3', '3 1 null 2 null']);
    expect(
      await lines('SELECT "templateId", "importedAt" IS NULL FROM "DttLibraryEntry" ORDER BY 1'),
    ).toEqual(['1 true', '2 false']);
  });

  it.each([
    {
      name: 'the next name is taken',
      users: `(1, 'Bob'), (2, 'bob'), (3, 'bob-2')`,
      repairs: [`${duplicates}: 1`],
      names: ['1 Bob', '2 bob-2-2', '3 bob-2'],
    },
    {
      name: 'the next name is taken in another case',
      users: `(7, 'Bob'), (8, 'bob'), (9, 'BOB-8')`,
      repairs: [`${duplicates}: 1`],
      names: ['7 Bob', '8 bob-8-8', '9 BOB-8'],
    },
    {
      name: 'the name in place of a blank one is taken',
      users: `(6, 'USER-7'), (7, ' '), (8, 'user-7')`,
      repairs: [`${duplicates}: 1`, `${blanks}: 1`],
      names: ['6 USER-7', '7 user-7-7', '8 user-7-8'],
    },
    {
      name: 'the one after the next is taken as well',
      users: `(1, 'bob'), (2, 'Bob'), (3, 'BOB'), (4, 'Bob-2'), (5, 'BOB-2-2')`,
      repairs: [`${duplicates}: 2`],
      names: ['1 bob', '2 Bob-2-2-2', '3 BOB-3', '4 Bob-2', '5 BOB-2-2'],
    },
  ])('gets unique names for its users when $name', async ({ users, repairs, names }) => {
    await database.pool.query(`${user}) VALUES ${users}`);
    expect(await upgrade()).toEqual(repairs);
    expect(await lines('SELECT id, username FROM "User" ORDER BY id')).toEqual(names);
  });

  it('has the segments of a template renumbered when some have negative positions', async () => {
    await database.pool.query(`${user}) VALUES (1, 'alice'); ${template} VALUES (1, '1', 1, 'One', 1, 1), (2, '2', 1, 'Two', 1, 1);
      INSERT INTO "DttTemplateSegment" (id, "templateId", position, type, duration) VALUES
        (1, 1, 0, 'a', 1), (2, 1, -1000000000, 'a', 1), (3, 1, -1000000001, 'a', 1), (4, 1, -2147483648, 'a', 1), (5, 1, 2147483647, 'a', 1),
        (6, 2, 2, 'a', 1), (7, 2, 4, 'a', 1)`);
    expect(await upgrade()).toEqual([
      'templates with a segment at a place below 0, whose segments are numbered anew: 1',
    ]);
    expect(await lines('SELECT "templateId", position, id FROM "DttTemplateSegment" ORDER BY 1, 2')).toEqual([
      '1 0 4',
      '1 1 3',
      '1 2 2',
      '1 3 1',
      '1 4 5',
      '2 2 6',
      '2 4 7',
    ]);
  });

  it('that mirrors an account has the records of other users unchanged', async () => {
    await database.pool.query(`
      ${user}, rank) VALUES (7, 'alice', 0), (8, 'Upstream-User-9', 0), (9, 'upstream-user-9', 0);
      INSERT INTO "Mirror" (source, "userId") VALUES ('https://example.com', 7);
      INSERT INTO "DttDevice" (id, "bubbleId", "ownerId", "macAddress", "apiHits", "createdDate") VALUES
        (1, '1', 7, '02:00:00:00:00:0A', 0, 'epoch'), (2, '2', 8, '02:00:00:00:00:0B', 0, 'epoch')`);
    expect(await upgrade()).toEqual([
      'users that stood for owners upstream, whose templates now name the owner by a number alone: 1',
      'mirrored accounts, in which defaults become null until the next refresh, since nobody was told them: 1',
    ]);
    expect(await lines('SELECT id, username, rank FROM "User" ORDER BY id')).toEqual([
      '7 alice null',
      '8 Upstream-User-9 0',
    ]);
    expect(
      await lines(
        'SELECT id, "apiHits", extract(epoch FROM "createdDate")::int FROM "DttDevice" ORDER BY id',
      ),
    ).toEqual(['1 null null', '2 0 0']);
  });

  it('without invalid rows is migrated without repairs', async () => {
    await database.pool.query(`${user}) VALUES (1, 'alice'); ${template} VALUES (1, '1', 1, 'One', 1, 1)`);
    expect(await upgrade()).toEqual([]);
  });
});
