/** A mirror whose upstream, database or process fails: it is correct in the end, and consistent until then. */

import pg from 'pg';
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { behave, contents, openScene, pathOf, reply, sessionCount, unchanged } from '../support/upstream.ts';

const scene = await openScene();
await scene.syncOnce();
/** The contents of a mirror after a run without any fault. */
const undisturbed = await contents(scene.target);
beforeEach(() => scene.renew());
afterAll(() => scene.close());

async function expectCorrect() {
  expect(undated(await contents(scene.target))).toEqual(undated(undisturbed));
}

/** Imports, and rows for records that cannot be read, have the time of the run that saw them first. */
function undated(everything: unknown): unknown {
  return JSON.parse(JSON.stringify(everything), (key, value) =>
    ['importedAt', 'createdDate', 'updatedAt'].includes(key) && Date.parse(value) > Date.parse('2026-03-01')
      ? 'recent'
      : value,
  );
}

/** Every session has all of its segments, and is marked where their details are missing. Returns how many have details. */
async function expectWholeSessions() {
  const sessions = await scene.target.client.dttSession.findMany({ include: { segments: true } });
  for (const { segments, detailsPending } of sessions) {
    expect(segments).not.toEqual([]);
    for (const segment of segments) expect(segment.repsMeasured === null).toBe(detailsPending);
  }
  return sessions.filter(({ detailsPending }) => !detailsPending).length;
}

describe('the mirror of an upstream', () => {
  it('has no gap after a run that fails between two pages of new sessions is followed by another', async () => {
    await scene.syncOnce();
    const { client } = scene.source.database;
    const late = await client.dttSession.createManyAndReturn({
      data: Array.from({ length: 130 }, (_, index) => ({
        bubbleId: `late-${index}`,
        ownerId: 1,
        trainerId: 1,
        // Later than the sessions of the demo account, the last of which has the time when it was loaded.
        createdAt: new Date(Date.now() + 60_000 + index),
      })),
      select: { id: true },
    });
    await client.trainerSegment.createMany({
      data: late.flatMap(({ id }) =>
        [0, 1, 2, 3].map((order) => ({ sessionId: id, type: 'bounce' as const, order, repsMeasured: 20 })),
      ),
    });
    // The first page of 100 gets through, and the second does not.
    scene.proxy.misbehave = (request) =>
      /\/dtt\/sessions\?.*offset=[^0]/.test(request.url ?? '') && Boolean(request.socket.destroy());
    await expect(scene.sync()).rejects.toThrow(/Gave up/);
    expect(await scene.target.client.dttSession.count()).toBe(sessionCount + 100);
    expect(await expectWholeSessions()).toBe(sessionCount);

    scene.proxy.misbehave = behave;
    // A session that cannot be read in this run is read by the next. This run reads the details of those listed before.
    spoil(['/dtt/sessions/', late[0]?.id ?? 0, { TrainerSegment: null }]);
    const report = await scene.sync();
    expect(await expectWholeSessions()).toBe(sessionCount + 129);
    expect(report.countsByKind.get('DTT sessions')).toMatchObject({
      created: 30,
      unchanged: sessionCount + 100,
    });
    expect(report.countsByKind.get('details of DTT sessions')).toMatchObject({ updated: 129, skipped: 1 });

    scene.proxy.rewrite = unchanged;
    await scene.sync();
    expect(await expectWholeSessions()).toBe(sessionCount + 130);
    expect((await scene.sync()).requests).toBeLessThanOrEqual(12);
  });

  it('is completed by a later run after its connection to the database is lost at any point', async () => {
    const uncaught: unknown[] = [];
    const note = (error: unknown) => uncaught.push(error);
    process.on('uncaughtException', note);
    const admin = await scene.target.pool.connect();
    /** The number of the statement before which the connection is ended. To be quick, only one in `stride` is tried. */
    let fatal = 1;
    const stride = 23;
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
        await Reflect.apply(ask, admin, ['TRUNCATE "Mirror", "User" CASCADE']);
        statements = 0;
        await scene.sync().then(
          () => outcomes.add('succeeded'),
          (error: unknown) => outcomes.add(error instanceof Error ? error.message : String(error)),
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
    await scene.sync();
    await expectCorrect();
  });

  it('is not written by a run that has lost its lease, which leaves the lease of the other run', async () => {
    let taken: unknown;
    const { pool } = scene.target;
    // The other takes over while the list of sessions is on its way.
    scene.proxy.misbehave = (request, response) => {
      if (taken !== undefined || pathOf(request) !== '/dtt/sessions') return false;
      taken = pool
        .query(`UPDATE "MirroredAccount" SET "heldBy" = 'another', "heldUntil" = now() + interval '1 min'`)
        .then(async () => {
          taken = await contents(scene.target);
          response.socket?.destroy();
        });
      return true;
    };
    await expect(scene.sync()).rejects.toThrow('Another run has taken over the account.');
    expect(taken).toEqual(await contents(scene.target));
    expect(await scene.target.client.dttSession.count()).toBe(0);
    expect(await scene.target.client.mirroredAccount.findMany()).toMatchObject([{ heldBy: 'another' }]);
  });
});

type Spoiled = readonly [path: string, id: number, change: Record<string, unknown>];

/** Changes records in the responses of the upstream: those with these ids, below these paths. */
function spoil(...all: Spoiled[]) {
  scene.proxy.rewrite = (at, data) => {
    const changes = all.filter(([path]) => at.startsWith(path));
    const spoilOne = (record: unknown) =>
      changes
        .filter(([, id]) => Object(record).id === id)
        .reduce<unknown>((spoiled, [, , change]) => ({ ...Object(spoiled), ...change }), record);
    const list: unknown = Object(data).data;
    return Array.isArray(list) ? { ...Object(data), data: list.map(spoilOne) } : spoilOne(data);
  };
}

it('a faulty record is skipped with a note, and read once it is valid again', async () => {
  spoil(
    ['/dtt', 1, { macAddress: {} }],
    ['/dtt/templates', 1, { Segment: null }],
    ['/dtt/sessions/', 20, { id: 5 }],
    // The segment and the identifier of other records.
    ['/dtt/sessions/', 21, { TrainerSegment: [{ id: 5, type: 'bounce' }] }],
    ['/dtt/sessions/', 22, { bubble_id: 'session-demo-60' }],
    ['/ossm', 1, { id: 'x' }],
  );
  const { rewrite } = scene.proxy;
  // That a list has a record twice is no fault of the record.
  const twice = (items: unknown[]) => ({ data: [...items, ...items] });
  scene.proxy.rewrite = (path, data) => (path === '/lkbx' ? twice(Object(data).data) : rewrite(path, data));
  // Details are read by several at once, and so their notes have no order.
  expect((await scene.sync()).notes.toSorted()).toEqual([
    '/dtt, record 1: macAddress: Invalid input: expected string, received object; skipped.',
    '/dtt/sessions/20: id: is 5; skipped.',
    '/dtt/sessions/21: Key (id)=(5) already exists.; skipped.',
    '/dtt/sessions/22: Key ("bubbleId")=(session-demo-60) already exists.; skipped.',
    '/dtt/templates/1: Segment: Invalid input: expected array, received null; skipped.',
    '/ossm, a record: id: Invalid input: expected number, received string; skipped.',
  ]);
  expect(await expectWholeSessions()).toBe(sessionCount - 3);

  scene.proxy.rewrite = unchanged;
  expect((await scene.sync()).notes).toEqual([]);
  await expectCorrect();
});

describe('an upstream with only the thirteen documented operations', () => {
  const documented = [
    /^\/dtt$/,
    /^\/dtt\/(templates|settings|sessions)\/\d+$/,
    /^\/dtt\/(templates|sessions|\d+)$/,
    /^\/users\/\d+$/,
    /^\/lkbx\/\d+$/,
    /^\/lkbx\/templates\/(\d+|active)$/,
    /^\/lkbx\/sessions\/\d+$/,
  ];

  beforeEach(() => {
    scene.proxy.misbehave = (request, response) => {
      const path = pathOf(request);
      if (documented.some((pattern) => pattern.test(path))) return false;
      // `/lkbx/templates` looks like `/lkbx/{id}` to a service that does not know it.
      return /^\/(users|dtt|lkbx)\/\w+$/.test(path)
        ? reply(response, 400, { ok: false, error: 'Invalid ID' })
        : reply(response, 404, '<h1>Not Found</h1>');
    };
  });

  it('is mirrored but for the records that it does not list, which the report says', async () => {
    const report = await scene.sync();
    expect(report.account).toMatchObject({ id: 1, username: 'demo' });
    expect(report.notes).toEqual([
      'GET /lkbx is not offered: it responded with 404.',
      'GET /lkbx/templates is not offered: it responded with 400.',
      'GET /lkbx/sessions is not offered: it responded with 400.',
      'GET /ossm is not offered: it responded with 404.',
    ]);
    expect(await scene.target.client.lkbxDevice.count()).toBe(0);
    expect(await expectWholeSessions()).toBe(sessionCount);
    scene.proxy.misbehave = behave;
    await scene.sync();
    await expectCorrect();
  });
});
