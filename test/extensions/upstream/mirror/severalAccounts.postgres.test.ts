/** A mirror of several accounts: each sees what it lists itself, whatever the others list. */

import { beforeEach, describe, expect, it } from 'vitest';
import { inTransaction, type Transaction } from '../../../../src/database/transaction.ts';
import { forgetAccount } from '../../../../src/extensions/upstream/cli/forget.ts';
import {
  areSessionsComplete,
  createFreshnessStore,
  noteMissingSessions,
  storeRead,
} from '../../../../src/extensions/upstream/mirror/accountFreshness.ts';
import { addAccount } from '../../../../src/extensions/upstream/mirror/mirror.ts';
import { whileLeased } from '../../../../src/extensions/upstream/mirror/run.ts';
import { mirrorOfMemory, missing } from '../support/memoryUpstream.ts';

const { database, memory, pull: pullOne } = await mirrorOfMemory(1, 2, 3);

async function pull(...ids: number[]) {
  for (const id of ids) await pullOne(id);
}

const one = { version: 1 };

/** The templates in the library of each account, own ones with a star: `1: 7* 8`. */
async function libraries(): Promise<string[]> {
  const { rows } = await database.pool.query<{ line: string }>(
    `SELECT "userId" || ': ' || string_agg("templateId" || CASE WHEN "importedAt" IS NULL THEN '*' ELSE '' END, ' ' ORDER BY "templateId") AS line
     FROM "DttLibraryEntry" GROUP BY "userId" ORDER BY "userId"`,
  );
  return rows.map(({ line }) => line);
}

const templates = () =>
  database.client.dttTemplate.findMany({ include: { segments: true }, orderBy: { id: 'asc' } });

function session(id: number, ownerId: number, trainerId: number, templateId: number | null = null) {
  memory.dttSessions.set(id, { ...one, ownerId, trainerId, templateId });
}

describe('a template that several accounts see', () => {
  beforeEach(() => {
    memory.dttTemplates.set(7, { ...one, ownerId: 1 });
    memory.users.get(2)?.imports.add(7);
  });

  it('is added to the library of another account without its details being read again, and stays there', async () => {
    for (const user of memory.users.values()) user.activeTemplate = 7;
    session(1, 1, 5, 7);
    await pull(1);
    const requests: string[] = [];
    await pullOne(2, { requests });
    expect(await database.client.dttSession.findMany()).toMatchObject([{ templateId: 7 }]);
    expect(await libraries()).toEqual(['1: 7*', '2: 7']);
    expect(requests.filter((path) => path === '/dtt/templates/7')).toEqual([]);
    expect(await database.client.dttTemplate.findMany()).toMatchObject([{ detailsPending: false }]);
    expect(await database.client.user.count({ where: { activeTemplateId: 7 } })).toBe(2);
    // It is public, so it stays there when its owner changes it.
    memory.dttTemplates.set(7, { version: 2, ownerId: 1 });
    await pullOne(1, { listsOnly: true });
    expect(await libraries()).toEqual(['1: 7*', '2: 7']);
    const segments = [{ duration: 1 }];
    expect(await templates()).toMatchObject([
      { name: 'template 7, version 2', detailsPending: true, segments },
    ]);
  });

  it('is given away by an account, and then by an owner who has no account here', async () => {
    memory.users.get(3)?.imports.add(7);
    await pull(3, 1);
    for (const ownerId of [2, 98, 99]) {
      memory.dttTemplates.set(7, { ...one, ownerId });
      await pull(2);
      expect((await libraries()).at(-1)).toBe('3: 7');
    }
    expect(await database.client.dttTemplate.findMany()).toMatchObject([
      { ownerId: null, foreignOwnerId: 99 },
    ]);
  });

  // versions.postgres.test.ts has the same of a response to the template by its id.
  it('is not overwritten by an older response to another account, to the list', async () => {
    await pullOne(1, { listsOnly: true });
    let times = 0;
    await pullOne(2, {
      listsOnly: true,
      async respond(requested, own) {
        if (!requested.startsWith('/dtt/templates?') || times++ > 0) return own;
        memory.dttTemplates.set(7, { ownerId: 1, version: 2 });
        await pullOne(1, { listsOnly: true });
        return own;
      },
    });
    expect(times).toBeGreaterThan(0);
    const [template] = await templates();
    expect(template).toMatchObject({ name: 'template 7, version 2', detailsPending: true, segments: [] });
    expect(await libraries()).toEqual(['1: 7*', '2: 7']);
    await pull(1);
    expect(await database.client.dttTemplateSegment.findMany()).toMatchObject([{ duration: 2 }]);
  });

  it('and is private is not imported by a response that is older than what it says', async () => {
    const change = (version: number) => memory.dttTemplates.set(7, { ownerId: 1, version, isPrivate: true });
    await pull(2, 1);
    change(3);
    await pullOne(2, {
      async respond(path, own) {
        if (!path.startsWith('/dtt/templates?')) return own;
        change(4);
        await pull(1);
        return own;
      },
    });
    expect(await libraries()).toEqual(['1: 7*']);
    expect(await database.client.dttTemplate.findMany()).toMatchObject([{ name: 'template 7, version 4' }]);
  });

  it('and is private is no longer imported once its details say what the others were not told', async () => {
    memory.dttTemplates.set(7, { ...one, ownerId: 1, isPrivate: true });
    for (const id of [1, 2]) await pullOne(id, { listsOnly: true });
    await pullOne(1, {
      respond: (path, own) => (path === '/dtt/templates/7' ? { ...Object(own), name: 'secret' } : own),
    });
    expect(await libraries()).toEqual(['1: 7*']);
  });

  it('has its details still pending for the others when one account gets 404 for them', async () => {
    memory.dttTemplates.set(8, { ...one, ownerId: 2 });
    const denied = { respond: (path: string, own: unknown) => (/templates\/\d/.test(path) ? missing : own) };
    await pullOne(1, { listsOnly: true });
    const report = await pullOne(2, denied);
    expect(report.countsByKind.get('details of DTT templates')).toMatchObject({ skipped: 2 });
    await pullOne(1, denied);
    expect(await templates()).toMatchObject([{ detailsPending: true }, { detailsPending: false }]);
    await pull(1);
    expect(await templates()).toMatchObject([
      { detailsPending: false, segments: [{ duration: 1 }] },
      { detailsPending: false, segments: [] },
    ]);
  });
});

describe('a record of one account', () => {
  it('is not removed by a run that finds it gone, if another account has taken it over meanwhile', async () => {
    memory.dttDevices.set(5, { ...one, ownerId: 1 });
    await pull(1);
    memory.dttDevices.set(5, { ...one, ownerId: 2 });
    await pullOne(1, {
      async respond(path, own) {
        // The run requests it by its id, since the list lacks it.
        if (path === '/dtt/5') await pull(2);
        return own;
      },
    });
    expect(await database.client.dttDevice.findMany()).toMatchObject([{ id: 5, ownerId: 2 }]);
  });

  it('is skipped for another account that lists it, and counted, if the record does not name its owner', async () => {
    session(1, 1, 5);
    await pull(1);
    memory.dttSessions.set(1, { ownerId: 2, version: 2, trainerId: 5, templateId: null });
    const report = await pullOne(2);
    expect(report.countsByKind.get('DTT sessions')).toMatchObject({ written: 0, skipped: 1 });
    expect(report.notes).toContain('/dtt/sessions, record 1: another account has it here; skipped.');
    const kept = { id: 1, ownerId: 1, name: 'version 1', goneTrainerId: 5, goneTemplateId: null };
    expect(await database.client.dttSession.findMany()).toMatchObject([kept]);
  });

  it('becomes the template of the active lock session, and of none of another account', async () => {
    memory.lockTemplates.set(6, { ...one, ownerId: 1 });
    Object.assign(memory.users.get(1) ?? {}, { activeLockTemplate: 6 });
    for (const active of [5, 4]) {
      for (const [id, ownerId] of [[3, 1] as const, [4, 1] as const, [5, 1] as const, [8, 2] as const])
        memory.lockSessions.set(id, { ...one, ownerId, isActive: id === active || id === 8 });
      session(active, 1, 5);
      await pull(1);
    }
    await pullOne(2, { respond: (path, own) => (path === '/lkbx/templates/active' ? { id: 6 } : own) });
    const found = await database.client.lockSession.findMany({ orderBy: { id: 'asc' } });
    expect(found.map(({ templateId }) => templateId)).toEqual([null, 6, 6, null]);
    expect(found.map(({ isActive }) => isActive)).toEqual([false, true, false, true]);
  });
});

it('first runs at once add an account once', async () => {
  const account = { id: 1, username: 'user 1' };
  await Promise.all([1, 2, 3].map(() => addAccount(database.pool, 'http://upstream', account)));
  expect(await database.client.mirroredAccount.count()).toBe(1);
});

it('no account gets a name that the mirror would give to another one', async () => {
  const rename = (id: number, username: string) => Object.assign(memory.users.get(id) ?? {}, { username });
  const names = async () =>
    (await database.client.user.findMany({ orderBy: { id: 'asc' } })).map(({ username }) => username);
  rename(1, 'eve (İD 23)');
  rename(2, 'EVE');
  rename(3, 'eve');
  await pull(1, 2, 3);
  expect(await names()).toEqual(['eve (İD 23) (id 1)', 'EVE', 'eve (id 3)']);
  rename(2, 'adam');
  rename(1, 'EVE');
  await pull(1);
  expect(await names()).toEqual(['EVE', 'EVE (id 2)', 'eve (id 3)']);
  await pull(2);
  expect(await names()).toEqual(['EVE', 'adam', 'eve (id 3)']);
});

describe('what is noted of one account', () => {
  const { pool } = database;
  const store = createFreshnessStore(pool, 2);
  const transaction: Transaction = (write) => inTransaction(pool, write);
  const rows = async () => (await pool.query('SELECT * FROM "MirroredAccount" ORDER BY "userId"')).rows;
  const time = (id: number, hour: number) => new Date(Date.UTC(2026, id, 1, hour));
  /** The mark of the last write of the account. */
  const mark = time(2, 2).getTime();
  const isNow = expect.toSatisfy((at: Date) => Math.abs(at.getTime() - Date.now()) < 60_000);
  /** Stores what a run has read after older sessions were missing. */
  async function read(began: number | undefined, since: number): Promise<void> {
    await noteMissingSessions(transaction, 2);
    await storeRead(transaction, 2, { began, mark: since, hasAllSessions: began !== undefined });
  }
  beforeEach(async () => {
    await pull(1, 2, 3);
    for (const id of [1, 2, 3])
      await pool.query(
        `UPDATE "MirroredAccount" SET "refreshedAt" = $2, "writtenAt" = $3, "sessionsComplete" = true WHERE "userId" = $1`,
        [id, time(id, 1), time(id, 2)],
      );
  });

  it.each<[string, () => Promise<unknown>, object]>([
    ['a write', () => store.storeWrite('other'), { writtenAt: isNow }],
    [
      'a write to a session',
      () => store.storeWrite('session'),
      { writtenAt: isNow, sessionsComplete: false },
    ],
    ['missing sessions', () => noteMissingSessions(transaction, 2), { sessionsComplete: false }],
    ['a read of templates', () => read(undefined, mark), { writtenAt: null, sessionsComplete: false }],
    ['a read after a write', () => read(performance.now(), mark), { writtenAt: null, refreshedAt: isNow }],
    [
      'a read before it',
      () => read(performance.now(), mark - 1),
      { refreshedAt: isNow, sessionsComplete: false },
    ],
  ])('is noted of it alone: %s', async (_, note, change) => {
    const before = await rows();
    await note();
    const expected = (changed: object) =>
      before.map((row) => (row.userId === 2 ? { ...row, ...changed } : row));
    expect(await rows()).toEqual(expected(change));
    const { age, ...known } = await store.read();
    const [, own] = await rows();
    expect(known).toEqual({
      refreshedAt: own.refreshedAt.getTime(),
      mark: own.writtenAt?.getTime(),
      isLeased: false,
    });
    expect(age + own.refreshedAt.getTime() - Date.now()).toBeLessThan(60_000);
    expect(await areSessionsComplete(pool, 2)).toBe(own.sessionsComplete);
    await whileLeased(pool, 2, async () => {
      const held = { ...own, heldBy: expect.any(String), heldUntil: isNow };
      expect(await rows()).toEqual(expected(held));
      expect([await store.read(), await createFreshnessStore(pool, 3).read()]).toMatchObject([
        { isLeased: true },
        { isLeased: false },
      ]);
    });
    expect(await rows()).toEqual(expected(own));
  });
});

describe('an account that is forgotten', () => {
  beforeEach(async () => {
    memory.dttTemplates.set(7, { ...one, ownerId: 1 });
    memory.dttTemplates.set(8, { ...one, ownerId: 1 });
    memory.dttTemplates.set(9, { ...one, ownerId: 99 });
    memory.users.get(1)?.imports.add(9);
    memory.users.get(2)?.imports.add(7);
    memory.dttDevices.set(1, { ...one, ownerId: 1 });
    memory.lockTemplates.set(1, { ...one, ownerId: 1 });
    memory.lockSessions.set(1, { ...one, ownerId: 1, isActive: true });
    Object.assign(memory.users.get(1) ?? {}, { activeTemplate: 8, activeLockTemplate: 1 });
    Object.assign(memory.users.get(2) ?? {}, { activeTemplate: 7 });
    session(1, 1, 1, 7);
    session(2, 2, 1, 7);
    await pull(1, 2);
  });

  it('is removed with all that it alone has, while templates that others have imported stay', async () => {
    expect(await forgetAccount(database.pool, { id: 1 })).toEqual({ id: 1, username: 'user 1', left: 1 });
    const left =
      'SELECT FROM "DttDevice" UNION ALL SELECT FROM "LockTemplate" UNION ALL SELECT FROM "LockSession"';
    expect((await database.pool.query(left)).rowCount).toBe(0);
    expect(await libraries()).toEqual(['2: 7']);
    const template = { id: 7, ownerId: null, foreignOwnerId: 1 };
    expect(await database.client.dttTemplate.findMany()).toMatchObject([template]);
    const kept = {
      id: 2,
      ownerId: 2,
      trainerId: null,
      goneTrainerId: 1,
      templateId: 7,
      goneTemplateId: null,
    };
    expect(await database.client.dttSession.findMany()).toMatchObject([kept]);
    expect(await database.client.user.findMany()).toMatchObject([{ id: 2, activeTemplateId: 7 }]);
    expect(await database.client.mirroredAccount.count()).toBe(1);
    // It can be mirrored again.
    await pull(1);
    expect(await libraries()).toEqual(['1: 7* 8* 9', '2: 7']);
  });

  it('has to be in a mirror', async () => {
    await expect(forgetAccount(database.pool, { id: 7 })).rejects.toThrow('has no account of the id 7');
    await database.pool.query('DELETE FROM "MirroredAccount"; DELETE FROM "Mirror"');
    await expect(forgetAccount(database.pool, { id: 1 })).rejects.toThrow('has no account of the id 1');
    expect(await database.client.user.count()).toBe(2);
  });
});
