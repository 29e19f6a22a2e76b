/** A mirror whose upstream, database or process fails: it is correct in the end, and consistent until then. */

import pg from 'pg';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { Unavailable, UpstreamRejection } from '../../../../src/extensions/upstream/client/upstream.ts';
import type { SyncOptions } from '../../../../src/extensions/upstream/mirror/sync.ts';
import { createAccount } from '../../../support/accounts.ts';
import { listed, mirrorOfMemory, type Respond, upstreamOf } from '../support/memoryUpstream.ts';

/** What the upstream gives in place of its own response. */
let rewrite: Respond;

const { database, memory, pull } = await mirrorOfMemory(1);
const { client, pool } = database;
const run = (options: Partial<SyncOptions> = {}) =>
  pull(1, { respond: (path, own) => rewrite(path, own), ...options });
beforeEach(() => {
  rewrite = (_path, own) => own;
  for (const id of [1, 2]) memory.dttTemplates.set(id, { version: 1, ownerId: 1 });
  memory.dttDevices.set(1, { version: 1, ownerId: 1 });
  addSessions(1, 24);
});

function addSessions(from: number, to: number): void {
  for (let id = from; id <= to; id++)
    memory.dttSessions.set(id, { version: 1, ownerId: 1, trainerId: 1, templateId: 1 });
}

const whole = { omit: { listedDigest: true }, include: { segments: true }, orderBy: { id: 'asc' } } as const;
/** The whole content of the mirror. */
const contents = () =>
  Promise.all([
    client.user.findMany(),
    client.dttDevice.findMany(),
    client.dttTemplate.findMany(whole),
    client.dttSession.findMany(whole),
    client.lockSession.findMany({ include: { segments: true } }),
  ]);

/** Every session has its segment, and is marked where the details of that are missing. Returns how many have details. */
async function expectWholeSessions() {
  const sessions = await client.dttSession.findMany({ include: { segments: true } });
  for (const { segments, detailsPending } of sessions)
    expect(segments.map(({ repsMeasured }) => repsMeasured === null)).toEqual([detailsPending]);
  return sessions.filter(({ detailsPending }) => !detailsPending).length;
}

it('there is no gap after a run that fails between two pages of new sessions is followed by another', async () => {
  await run();
  addSessions(25, 154);
  rewrite = (path, own) =>
    /\/dtt\/sessions\?.*offset=[^0]/.test(path) ? new Unavailable('no', { failure: 'no' }) : own;
  await expect(run()).rejects.toThrow('no');
  expect([await client.dttSession.count(), await expectWholeSessions()]).toEqual([124, 24]);
  rewrite = (_path, own) => own;
  expect((await run()).countsByKind.get('DTT sessions')).toMatchObject({ written: 30 });
  expect(await expectWholeSessions()).toBe(154);
  expect((await run()).requests).toBeLessThanOrEqual(12);
  memory.dttSessions.delete(1);
  const { countsByKind } = await run({ full: true });
  expect(countsByKind.get('DTT sessions')).toMatchObject({ fetched: 153, gone: 1 });
});

it('a run is completed by a later one after its connection to the database is lost at any point', async () => {
  await run();
  const undisturbed = await contents();
  const uncaught: unknown[] = [];
  const note = (error: unknown) => uncaught.push(error);
  process.on('uncaughtException', note);
  const admin = await pool.connect();
  /** The number of the statement before which the connection is ended. To be quick, only one in `stride` is tried. */
  let fatal = 1;
  const stride = 11;
  let statements = 0;
  const ask = pg.Client.prototype.query;
  const spy = vi.spyOn(pg.Client.prototype, 'query');
  // Of the many forms of the method, those with a promise and those with a callback both pass through here.
  spy.mockImplementation(async function (this: pg.Client & { processID?: number }, ...given: unknown[]) {
    if (this.processID !== Object(admin).processID && ++statements === fatal) {
      const ended = new Promise<void>((settle) => this.once('end', settle));
      await Reflect.apply(ask, admin, ['SELECT pg_terminate_backend($1)', [this.processID]]);
      await ended;
    }
    return Reflect.apply(ask, this, given);
  } as () => void);
  try {
    const outcomes = new Set<string>();
    // Each run begins with an empty mirror; the last one has fewer statements than `fatal`.
    for (; statements >= fatal - stride; fatal += stride) {
      await Reflect.apply(ask, admin, ['TRUNCATE "Mirror", "User", "DttTemplate" CASCADE']);
      statements = 0;
      await run().then(
        () => outcomes.add('succeeded'),
        (error: unknown) => outcomes.add(String(error)),
      );
      expect(uncaught, `at statement ${fatal}`).toEqual([]);
    }
    expect(fatal).toBeGreaterThan(50);
    // Some of them have failed, in one way or another.
    expect(outcomes.size).toBeGreaterThan(1);
  } finally {
    spy.mockRestore();
    admin.release();
    process.off('uncaughtException', note);
  }
  await run();
  expect(await contents()).toEqual(undisturbed);
});

it('nothing is written by a run that has lost its lease, which leaves the lease of the other run', async () => {
  let taken: unknown;
  // The other takes over while the list of sessions is on its way.
  rewrite = async (path, own) => {
    if (!path.startsWith('/dtt/sessions') || taken !== undefined) return own;
    await pool.query(
      `UPDATE "MirroredAccount" SET "heldBy" = 'another', "heldUntil" = now() + interval '1 min'`,
    );
    taken = await contents();
    return own;
  };
  await expect(run()).rejects.toThrow('Another run has taken over the account.');
  expect(await contents()).toEqual(taken);
  expect(await client.dttSession.count()).toBe(0);
  expect(await client.mirroredAccount.findMany()).toMatchObject([{ heldBy: 'another' }]);
});

it('a faulty record is skipped with a note, and read once it is valid again', async () => {
  await run();
  const undisturbed = await contents();
  await pool.query('TRUNCATE "Mirror", "User", "DttTemplate" CASCADE');
  const spoiled: readonly (readonly [path: RegExp, id: number, change: object])[] = [
    [/^\/dtt\?/, 1, { macAddress: {} }],
    [/^\/dtt\/templates\/1$/, 1, { Segment: null }],
    [/^\/dtt\/sessions\/20$/, 20, { id: 5 }],
    // The segment and the identifier of other records.
    [/^\/dtt\/sessions\/21$/, 21, { TrainerSegment: [{ id: 50, type: 'bounce' }] }],
    [/^\/dtt\/sessions\/22$/, 22, { bubble_id: 'session-1' }],
  ];
  const spoil = (path: string, record: { id: number }) => {
    const [, , change] = spoiled.find(([at, id]) => at.test(path) && id === record.id) ?? [];
    return { ...record, ...change };
  };
  rewrite = (path, own) => {
    const { data } = Object(own);
    if (own instanceof Error || own === null) return own;
    if (path === '/dtt/sessions/19') return new UpstreamRejection('no', { failure: 'no', status: 403 }, 'no');
    if (!Array.isArray(data)) return spoil(path, Object(own));
    const items = data.map((each) => spoil(path, each));
    if (path.startsWith('/lkbx/sessions')) return { data: [{ id: 'x' }] };
    // That a list has a record twice is no fault of the record.
    return { data: path.startsWith('/dtt/templates') ? [...items, ...items] : items };
  };
  // Details are read by several at once, and so their notes have no order.
  expect((await run()).notes.toSorted()).toEqual([
    '/dtt, record 1: macAddress: Invalid input: expected string, received object; skipped.',
    '/dtt/sessions/19: it responded with 403; skipped.',
    '/dtt/sessions/20: id: is 5; skipped.',
    '/dtt/sessions/21: Key (id)=(50) already exists.; skipped.',
    '/dtt/sessions/22: Key ("bubbleId")=(session-1) already exists.; skipped.',
    '/dtt/templates/1: Segment: Invalid input: expected array, received null; skipped.',
    '/lkbx/sessions, a record: id: Invalid input: expected number, received string; skipped.',
    'GET /lkbx is not offered: it responded with 404.',
    'GET /ossm is not offered: it responded with 404.',
  ]);
  expect(await expectWholeSessions()).toBe(20);
  rewrite = (_path, own) => own;
  expect((await run()).notes).toHaveLength(2);
  expect(await contents()).toEqual(undisturbed);
});

it('an upstream with only the documented operations is mirrored but for the records that it does not list, which the report says', async () => {
  const documented =
    /^\/(dtt|dtt\/templates|dtt\/sessions|lkbx\/templates\/active)$|^\/dtt\/(templates|sessions)\/\d+$/;
  // `/lkbx/templates` looks like `/lkbx/{id}` to a service that does not know it.
  const unknown = new UpstreamRejection('no', { failure: 'no', status: 400 }, 'Invalid ID');
  rewrite = (path, own) => {
    if (path === '/users/1') return { id: 1, username: 'user 1' };
    return documented.test(path.replace(/\?.*/, '')) ? own : unknown;
  };
  const { account, notes } = await run();
  expect(account).toMatchObject({ id: 1, username: 'user 1' });
  expect(notes).toEqual(
    ['/lkbx', '/lkbx/templates', '/lkbx/sessions', '/ossm'].map(
      (path) => `GET ${path} is not offered: it responded with 400.`,
    ),
  );
  expect(await expectWholeSessions()).toBe(24);
});

describe('the active template', () => {
  const active = async () => (await client.user.findUniqueOrThrow({ where: { id: 1 } })).activeTemplateId;
  beforeEach(async () => {
    Object.assign(memory.users.get(1) ?? {}, { activeTemplate: 1 });
    await run();
  });
  const changeListed = (id: number, change: object) => {
    rewrite = listed('/dtt/templates', (each) => (each.id === id ? { ...each, ...change } : each));
  };

  it.each([
    ['two templates are marked as active', 2, { isActive: true }, 0],
    ['the active template is not valid', 1, { isActive: 'yes' }, 1],
  ])('is the same as before if %s in the list', async (_name, id, change, skipped) => {
    changeListed(id, change);
    expect((await run()).countsByKind.get('DTT templates')).toMatchObject({ written: 0, skipped });
    expect(await active()).toBe(1);
  });

  it('is gone once it was deleted upstream, even if another template is not valid', async () => {
    changeListed(2, { name: [] });
    memory.dttTemplates.delete(1);
    Object.assign(memory.users.get(1) ?? {}, { activeTemplate: null });
    expect((await run()).countsByKind.get('DTT templates')).toMatchObject({ gone: 1, skipped: 1 });
    expect([await active(), await client.dttTemplate.count()]).toEqual([null, 1]);
  });
});

describe('a database stays as it is, and a run fails', () => {
  it('if it has an account that is not mirrored', async () => {
    await createAccount(client, 'alice');
    const before = await contents();
    await expect(run()).rejects.toThrow(/holds the account "alice".*set DATA_DIR to an empty folder/);
    expect(await contents()).toEqual(before);
  });

  it('if it mirrors another upstream', async () => {
    await run();
    const before = await contents();
    const elsewhere = { ...upstreamOf(memory, 1), base: 'http://elsewhere' };
    await expect(run({ upstream: elsewhere })).rejects.toThrow(/The database mirrors http/);
    expect(await contents()).toEqual(before);
  });
});
