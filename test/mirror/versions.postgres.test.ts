/** Which version of a record a run leaves in the mirror, where what the upstream says of it does not go forward. */

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createDetails, readAgain } from '../../src/mirror/details.ts';
import { sync } from '../../src/mirror/sync.ts';
import { openTestDatabase, type TestDatabase } from '../support/gateway.ts';
import { addUser, createMemoryUpstream, type MemoryUpstream, upstreamOf } from '../support/memoryUpstream.ts';

let database: TestDatabase;
let memoryUpstream: MemoryUpstream;
beforeAll(async () => {
  database = await openTestDatabase();
});
beforeEach(async () => {
  await database.pool.query('TRUNCATE "Mirror", "User", "DttTemplate" CASCADE');
  memoryUpstream = createMemoryUpstream();
  for (const id of [1, 2]) addUser(memoryUpstream, id);
  memoryUpstream.dttTemplates.set(7, { ownerId: 1, version: 5 });
});
afterAll(() => database?.close());

/** @param meanwhile is done once a path was asked for, before the run gets the response. */
async function pull(
  id: number,
  { full = false, meanwhile = async (_path: string) => {}, rewrite = (_path: string, data: unknown) => data },
) {
  const upstream = upstreamOf(memoryUpstream, id);
  const report = await sync({
    pool: database.pool,
    full,
    signal: AbortSignal.timeout(10_000),
    upstream: {
      ...upstream,
      async get(path) {
        const data = rewrite(path, await upstream.get(path));
        await meanwhile(path);
        return data;
      },
    },
  });
  if (!report) throw new Error('another run is under way');
  return report;
}

const template = () =>
  database.client.dttTemplate.findUniqueOrThrow({ where: { id: 7 }, include: { segments: true } });

describe('a template whose time of change by its id is older than in the list has its details all the same', () => {
  const older = (path: string, data: unknown) =>
    path === '/dtt/templates/7' ? { ...Object(data), updatedAt: '2026-01-01T00:00:00Z' } : data;

  it('by a run', async () => {
    await pull(1, { rewrite: older });
    expect(await template()).toMatchObject({ detailsPending: false, segments: [{ duration: 5 }] });
  });

  it('where somebody asks for them', async () => {
    const upstream = upstreamOf(memoryUpstream, 1);
    await sync({ pool: database.pool, upstream, listsOnly: true });
    const get = async (path: string) => older(path, await upstream.get(path));
    const options = { pool: database.pool, accountId: 1, model: 'DttTemplate', ids: [7] } as const;
    expect(await createDetails().fetch({ ...options, upstream: { ...upstream, get } })).toEqual([]);
    expect(await template()).toMatchObject({ detailsPending: false, segments: [{ duration: 5 }] });
  });
});

it.each([false, true])(
  'a template that goes back to an older version upstream does so here, full: %s',
  async (full) => {
    memoryUpstream.users.get(2)?.imports.add(7);
    await pull(1, {});
    await pull(2, {});
    memoryUpstream.dttTemplates.set(7, { ownerId: 1, version: 3 });
    await pull(2, { full });
    expect(await template()).toMatchObject({ name: 'template 7, version 3', segments: [{ duration: 3 }] });
  },
);

it('details that another account finds outdated again and again are left to the next run', async () => {
  memoryUpstream.users.get(2)?.imports.add(7);
  await sync({ pool: database.pool, upstream: upstreamOf(memoryUpstream, 1), listsOnly: true });
  let times = 0;
  const meanwhile = async (path: string) => {
    if (path !== '/dtt/templates/7' || times++ > 20) return;
    memoryUpstream.dttTemplates.set(7, { ownerId: 1, version: 5 + times });
    await sync({ pool: database.pool, upstream: upstreamOf(memoryUpstream, 1), listsOnly: true });
  };
  await pull(2, { meanwhile });
  expect(times).toBe(1);
  expect(await template()).toMatchObject({ name: 'template 7, version 6', detailsPending: true });
  await pull(2, {});
  expect(await template()).toMatchObject({ detailsPending: false, segments: [{ duration: 6 }] });
});

describe('a value that an upstream has no more', () => {
  /** What the stand-in does not have. */
  const having = (userFields: object, deviceFields: object) => (path: string, data: unknown) => {
    if (path === '/users/me') return { ...Object(data), ...userFields };
    if (!path.startsWith('/dtt?')) return data;
    return { data: Object(data).data.map((device: object) => ({ ...device, ...deviceFields })) };
  };
  const user = { subscriptionTier: 'ultra', accountType: 'user', league: 1, rank: 2, totalPoints: 3 };
  const more = { matchPoints: 4, dttTotalReps: 5, dttTotalSessions: 6 };
  const device = { createdDate: '2026-01-01T00:00:00.000Z', apiHits: 7 };
  const nulls = (fields: object) => Object.fromEntries(Object.keys(fields).map((name) => [name, null]));
  const here = async () => ({
    user: await database.client.user.findUniqueOrThrow({ where: { id: 1 } }),
    device: await database.client.dttDevice.findUniqueOrThrow({ where: { id: 4 } }),
  });
  beforeEach(async () => {
    memoryUpstream.dttDevices.set(4, { ownerId: 1, version: 1 });
    await pull(1, { rewrite: having({ ...user, ...more }, device) });
  });

  it('is null here, where it says null', async () => {
    await pull(1, { rewrite: having(nulls({ ...user, ...more }), nulls(device)) });
    expect(await here()).toMatchObject({ user: nulls({ ...user, ...more }), device: nulls(device) });
  });

  it('stays, where it leaves the value out', async () => {
    await pull(1, { rewrite: having({ subscriptionTier: undefined }, {}) });
    const apiHits = device.apiHits;
    expect(await here()).toMatchObject({ user: { ...user, ...more }, device: { apiHits } });
  });
});

describe('a record of which its list says something less exactly than its id does, or more', () => {
  /** As they are in a list, and by the id. */
  function saying(fields: { kind: string; listed: object; exact: object; part?: string }) {
    const { kind, listed, exact, part } = fields;
    const change = (record: object, values: object) =>
      part === undefined
        ? { ...record, ...values }
        : { ...record, [part]: Object(record)[part].map((each: object) => ({ ...each, ...values })) };
    return (path: string, data: unknown) => {
      if (path.startsWith(`${kind}?`))
        return { data: Object(data).data.map((record: object) => change(record, listed)) };
      return path.startsWith(`${kind}/`) ? change(Object(data), exact) : data;
    };
  }
  const grades = (listed: number, exact: number) =>
    saying({
      kind: '/dtt/sessions',
      part: 'TrainerSegment',
      listed: { percentGrade: listed },
      exact: { percentGrade: exact },
    });
  const times = (listed: string, exact: string) =>
    saying({ kind: '/dtt/templates', listed: { updatedAt: listed }, exact: { updatedAt: exact } });
  const again = async (rewrite: ReturnType<typeof saying>) => {
    const { countsByKind } = await pull(1, { rewrite });
    return [...countsByKind.values()].reduce((sum, { updated }) => sum + updated, 0);
  };
  const grade = async () => (await database.client.trainerSegment.findFirstOrThrow()).percentGrade;

  it.each([
    [87, 87.456],
    [87.5, 87.456],
    [86, 86.5],
    // A half, which is a little more in binary.
    [87.4, 87.35],
    [87.46, 87],
    // Decimals that are cut off.
    [87, 87.9],
  ])('does not change by that: a grade of %d and %d', async (listed, exact) => {
    memoryUpstream.dttSessions.set(1, { version: 1, ownerId: 1, trainerId: 1, templateId: null });
    await pull(1, { rewrite: grades(listed, exact) });
    expect(await again(grades(listed, exact))).toBe(0);
    expect(await grade()).toBe(exact);
    expect(await again(grades(listed - 1, exact - 1))).toBe(1);
    expect(await grade()).toBe(exact - 1);
  });

  it.each([
    [87.5, 88],
    [88, 87.6],
  ])(
    'changes by less than rounding may, where the list rounds nothing: from %d to %d',
    async (before, now) => {
      memoryUpstream.dttSessions.set(1, { version: 1, ownerId: 1, trainerId: 1, templateId: null });
      await pull(1, { rewrite: grades(before, before) });
      expect(await again(grades(now, now))).toBe(1);
      expect(await grade()).toBe(now);
    },
  );

  it('changes by that from when a list was first compared, where what it said before is not remembered', async () => {
    memoryUpstream.dttSessions.set(1, { version: 1, ownerId: 1, trainerId: 1, templateId: null });
    await pull(1, { rewrite: grades(87.5, 87.5) });
    await database.pool.query('UPDATE "DttSession" SET "listedDigest" = NULL');
    expect(await again(grades(88, 87.5))).toBe(0);
    expect(await again(grades(88, 87.5))).toBe(0);
    expect(await again(grades(87.6, 87.6))).toBe(1);
    expect(await grade()).toBe(87.6);
  });

  it('is the template of two accounts, whose lists say the same of it', async () => {
    memoryUpstream.users.get(2)?.imports.add(7);
    const rounded = saying({
      kind: '/dtt/templates',
      listed: { targetDepth: 5 },
      exact: { targetDepth: 5.25 },
    });
    for (const id of [1, 2, 1, 2]) await pull(id, { rewrite: rounded });
    const asked: string[] = [];
    const meanwhile = async (path: string) => void asked.push(path);
    for (const id of [1, 2]) await pull(id, { rewrite: rounded, meanwhile });
    expect(asked.filter((path) => path.startsWith('/dtt/templates/'))).toEqual([]);
    expect(await template()).toMatchObject({ targetDepth: 5.25 });
  });

  it('is read again once after a client has written it upstream, where the list rounds', async () => {
    memoryUpstream.dttSessions.set(1, { version: 1, ownerId: 1, trainerId: 1, templateId: null });
    await pull(1, { rewrite: grades(87, 87.4) });
    const upstream = upstreamOf(memoryUpstream, 1);
    const get = async (path: string) => grades(87, 86.9)(path, await upstream.get(path));
    await readAgain({ pool: database.pool, upstream: { ...upstream, get }, accountId: 1 }, 1, false);
    expect(await grade()).toBe(86.9);
    expect(await again(grades(87, 87.1))).toBe(1);
    expect(await grade()).toBe(87.1);
    expect(await again(grades(87, 87.2))).toBe(0);
  });

  it('changes by its name, though that begins with a time', async () => {
    memoryUpstream.dttSessions.set(1, { version: 1, ownerId: 1, trainerId: 1, templateId: null });
    const named = (name: string) => saying({ kind: '/dtt/sessions', listed: { name }, exact: { name } });
    await pull(1, { rewrite: named('2026-01-01T10:00:00 (morning)') });
    expect(await again(named('2026-01-01T10:00:00 (evening)'))).toBe(1);
  });

  it.each([
    ['2026-02-01T00:00:01.500Z', '2026-02-01T00:00:01Z'],
    ['2026-02-01T00:00:01Z', '2026-02-01T00:00:01.500Z'],
  ])('does not change by that: a time of %s and %s', async (listed, exact) => {
    await pull(1, { rewrite: times(listed, exact) });
    expect(await again(times(listed, exact))).toBe(0);
    expect((await template()).updatedAt).toEqual(new Date(exact));
    memoryUpstream.dttTemplates.set(7, { ownerId: 1, version: 6 });
    const later = (time: string) => time.replace(':01', ':02');
    expect(await again(times(later(listed), later(exact)))).toBe(1);
    expect(await template()).toMatchObject({
      updatedAt: new Date(later(exact)),
      segments: [{ duration: 6 }],
    });
  });

  it('changes within a second, where both say the fraction', async () => {
    const [earlier, later] = ['2026-02-01T00:00:01.250Z', '2026-02-01T00:00:01.500Z'];
    await pull(1, { rewrite: times(earlier, earlier) });
    expect(await again(times(later, later))).toBe(1);
  });
});
