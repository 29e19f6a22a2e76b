/** Deletions, for every relation: what is deleted as well, what stays, and what prevents a deletion. */

import { beforeEach, describe, expect, it } from 'vitest';
import { announcedTables } from '../../src/database/models.ts';
import { type Account, createAccount, importTemplate, recordsOf } from '../support/accounts.ts';
import { databaseWith } from '../support/setUp.ts';

const { database } = await databaseWith();
let alice: Account;
let bob: Account;
/** A template of bob's that alice has imported, activated and trained with. */
let shared: number;
beforeEach(async () => {
  const { client } = database;
  await client.user.deleteMany();
  alice = await createAccount(client, 'alice');
  bob = await createAccount(client, 'bob');
  [, shared] = bob.dttTemplates;
  await importTemplate(client, alice, shared);
  await client.user.update({ where: { id: alice.userId }, data: { activeTemplateId: shared } });
  await client.dttSession.updateMany({
    where: { id: { in: alice.dttSessions.slice(0, 2) } },
    data: { templateId: shared },
  });
});

/** The number of rows of each table, and of the references that a deletion may set to null. */
async function counts(): Promise<Record<string, number>> {
  const all = [
    ...announcedTables.map((table) => `('${table}', (SELECT count(*) FROM "${table}"))`),
    `('active', (SELECT count("activeTemplateId") FROM "User"))`,
    `('sessions with a template', (SELECT count("templateId") FROM "DttSession"))`,
    `('lock sessions with a template', (SELECT count("templateId") FROM "LockSession"))`,
  ];
  const { rows } = await database.pool.query<{ name: string; number: number }>(
    `SELECT name, number::int FROM (VALUES ${all}) AS counted (name, number)`,
  );
  return Object.fromEntries(rows.map(({ name, number }) => [name, number]));
}

/** By how much a statement lowers each of these numbers. */
async function lostBy(sql: string): Promise<Record<string, number>> {
  const before = await counts();
  await database.pool.query(sql);
  const after = await counts();
  return Object.fromEntries(
    Object.entries(before).flatMap(([name, number]) => {
      const lost = number - (after[name] ?? 0);
      return lost === 0 ? [] : [[name, lost]];
    }),
  );
}

describe('a deletion', () => {
  it('of a user deletes all of their records, and removes their templates from other libraries', async () => {
    const records = Object.entries(recordsOf(bob)).map(([type, ids]) => [type, ids.length]);
    expect(await lostBy(`DELETE FROM "User" WHERE id = ${bob.userId}`)).toEqual({
      ...Object.fromEntries(records),
      User: 1,
      ApiToken: 1,
      DttTemplateSegment: 6,
      // Three of the user's own, and one that another user has imported.
      DttLibraryEntry: 4,
      TrainerSegment: 12,
      LockSegment: 4,
      active: 1,
      'sessions with a template': 5 + 2,
      'lock sessions with a template': 2,
    });
  });

  it.each<[string, () => string, Record<string, number>]>([
    [
      'of a template deletes its segments, and leaves its sessions without a template',
      () => `DELETE FROM "DttTemplate" WHERE id = ${shared}`,
      {
        DttTemplate: 1,
        DttTemplateSegment: 2,
        DttLibraryEntry: 2,
        active: 1,
        'sessions with a template': 2 + 2,
      },
    ],
    [
      'of an import deactivates the template, and leaves its sessions unchanged',
      () => `DELETE FROM "DttLibraryEntry" WHERE "userId" = ${alice.userId} AND "templateId" = ${shared}`,
      { DttLibraryEntry: 1, active: 1 },
    ],
    [
      'of a lock template leaves its sessions without a template',
      () => `DELETE FROM "LockTemplate" WHERE id = ${alice.lockTemplates[0]}`,
      { LockTemplate: 1, 'lock sessions with a template': 1 },
    ],
  ])('%s', async (_, sql, lost) => {
    expect(await lostBy(sql())).toEqual(lost);
  });
});

it('a template that gets another owner leaves the library of its previous owner, and is an own template of the new one', async () => {
  const [template] = alice.dttTemplates;
  const { client } = database;
  await client.user.update({ where: { id: alice.userId }, data: { activeTemplateId: template } });
  await importTemplate(client, bob, template);
  await client.dttTemplate.update({ where: { id: template }, data: { ownerId: bob.userId } });
  expect(await client.dttLibraryEntry.findMany({ where: { templateId: template } })).toEqual([
    { userId: bob.userId, templateId: template, importedAt: null },
  ]);
  expect(await client.user.findUnique({ where: { id: alice.userId } })).toMatchObject({
    activeTemplateId: null,
  });
});

it('an import whose time is set to null gets a time again, since null stands for an own template', async () => {
  const { client } = database;
  const userId_templateId = { userId: alice.userId, templateId: shared };
  await client.dttLibraryEntry.update({ where: { userId_templateId }, data: { importedAt: null } });
  expect(await client.dttLibraryEntry.findUnique({ where: { userId_templateId } })).toMatchObject({
    importedAt: expect.any(Date),
  });
});
