/** Which version of a record a run stores if the upstream goes back to an older one, or its list differs from the record. */

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createDetails, noteChanged, readAgain } from '../../src/mirror/details.ts';
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

/** @param meanwhile is called after the upstream has responded, and before the run gets the response. */
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

describe('a template with an older time of change by its id than in the list', () => {
  const older = (path: string, data: unknown) =>
    path === '/dtt/templates/7' ? { ...Object(data), updatedAt: '2026-01-01T00:00:00Z' } : data;

  it('gets its details from a run', async () => {
    await pull(1, { rewrite: older });
    expect(await template()).toMatchObject({ detailsPending: false, segments: [{ duration: 5 }] });
  });

  it('gets its details when a request needs them', async () => {
    const upstream = upstreamOf(memoryUpstream, 1);
    await sync({ pool: database.pool, upstream, listsOnly: true });
    const get = async (path: string) => older(path, await upstream.get(path));
    const options = { pool: database.pool, accountId: 1, model: 'DttTemplate', ids: [7] } as const;
    expect(await createDetails().fetch({ ...options, upstream: { ...upstream, get } })).toEqual([]);
    expect(await template()).toMatchObject({ detailsPending: false, segments: [{ duration: 5 }] });
  });
});

it.each([false, true])(
  'a template that goes back to an older version upstream does so in the mirror, in a run with full: %s',
  async (full) => {
    memoryUpstream.users.get(2)?.imports.add(7);
    await pull(1, {});
    await pull(2, {});
    memoryUpstream.dttTemplates.set(7, { ownerId: 1, version: 3 });
    await pull(2, { full });
    expect(await template()).toMatchObject({ name: 'template 7, version 3', segments: [{ duration: 3 }] });
  },
);

it('details that become outdated while a run reads them, by a run of another account, are left to the next run', async () => {
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

describe('a value that the upstream no longer sends', () => {
  /** Adds fields that the upstream in memory does not have. */
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

  it('becomes null if the upstream sends null', async () => {
    await pull(1, { rewrite: having(nulls({ ...user, ...more }), nulls(device)) });
    expect(await here()).toMatchObject({ user: nulls({ ...user, ...more }), device: nulls(device) });
  });

  it('stays if the upstream leaves it out', async () => {
    await pull(1, { rewrite: having({ subscriptionTier: undefined }, {}) });
    const apiHits = device.apiHits;
    expect(await here()).toMatchObject({ user: { ...user, ...more }, device: { apiHits } });
  });
});

describe('a record whose values are more or less exact in its list than by its id', () => {
  /** Responds with the fields `listed` in the list of a kind, and with `exact` for its records by their ids. */
  function rewriteFields(fields: { kind: string; listed: object; exact: object; part?: string }) {
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
    rewriteFields({
      kind: '/dtt/sessions',
      part: 'TrainerSegment',
      listed: { percentGrade: listed },
      exact: { percentGrade: exact },
    });
  const times = (listed: string, exact: string) =>
    rewriteFields({ kind: '/dtt/templates', listed: { updatedAt: listed }, exact: { updatedAt: exact } });
  const countUpdates = async (rewrite: ReturnType<typeof rewriteFields>) => {
    const { countsByKind } = await pull(1, { rewrite });
    return [...countsByKind.values()].reduce((sum, { updated }) => sum + updated, 0);
  };
  const grade = async () => (await database.client.trainerSegment.findFirstOrThrow()).percentGrade;

  it.each([
    [87, 87.456],
    [87.5, 87.456],
    [86, 86.5],
    // A half, which is a little off in binary.
    [87.4, 87.35],
    [87.46, 87],
    // Decimals that are cut off.
    [87, 87.9],
  ])('is not updated for a grade of %d in the list and %d by its id', async (listed, exact) => {
    memoryUpstream.dttSessions.set(1, { version: 1, ownerId: 1, trainerId: 1, templateId: null });
    await pull(1, { rewrite: grades(listed, exact) });
    expect(await countUpdates(grades(listed, exact))).toBe(0);
    expect(await grade()).toBe(exact);
    expect(await countUpdates(grades(listed - 1, exact - 1))).toBe(1);
    expect(await grade()).toBe(exact - 1);
  });

  it.each([
    [87.5, 88],
    [88, 87.6],
  ])(
    'is updated for a difference as small as that of rounding if its list does not round: from %d to %d',
    async (before, now) => {
      memoryUpstream.dttSessions.set(1, { version: 1, ownerId: 1, trainerId: 1, templateId: null });
      await pull(1, { rewrite: grades(before, before) });
      expect(await countUpdates(grades(now, now))).toBe(1);
      expect(await grade()).toBe(now);
    },
  );

  it('is updated only for a change after the first list that is compared, if no earlier list is remembered', async () => {
    memoryUpstream.dttSessions.set(1, { version: 1, ownerId: 1, trainerId: 1, templateId: null });
    await pull(1, { rewrite: grades(87.5, 87.5) });
    await database.pool.query('UPDATE "DttSession" SET "listedDigest" = NULL');
    expect(await countUpdates(grades(88, 87.5))).toBe(0);
    expect(await countUpdates(grades(88, 87.5))).toBe(0);
    expect(await countUpdates(grades(87.6, 87.6))).toBe(1);
    expect(await grade()).toBe(87.6);
  });

  it('is not read again for each account if it is a template in the lists of two', async () => {
    memoryUpstream.users.get(2)?.imports.add(7);
    const rounded = rewriteFields({
      kind: '/dtt/templates',
      listed: { targetDepth: 5 },
      exact: { targetDepth: 5.25 },
    });
    for (const id of [1, 2, 1, 2]) await pull(id, { rewrite: rounded });
    const requests: string[] = [];
    const meanwhile = async (path: string) => void requests.push(path);
    for (const id of [1, 2]) await pull(id, { rewrite: rounded, meanwhile });
    expect(requests.filter((path) => path.startsWith('/dtt/templates/'))).toEqual([]);
    expect(await template()).toMatchObject({ targetDepth: 5.25 });
  });

  it('is read again once after a client has written it upstream, if its list rounds', async () => {
    memoryUpstream.dttSessions.set(1, { version: 1, ownerId: 1, trainerId: 1, templateId: null });
    await pull(1, { rewrite: grades(87, 87.4) });
    const upstream = upstreamOf(memoryUpstream, 1);
    const get = async (path: string) => grades(87, 86.9)(path, await upstream.get(path));
    await noteChanged(database.pool, 1, 1);
    await readAgain({ pool: database.pool, upstream: { ...upstream, get }, accountId: 1 }, 1, false);
    expect(await grade()).toBe(86.9);
    expect(await countUpdates(grades(87, 87.1))).toBe(1);
    expect(await grade()).toBe(87.1);
    expect(await countUpdates(grades(87, 87.2))).toBe(0);
  });

  it('is updated for a change of its name, even if that begins with a time', async () => {
    memoryUpstream.dttSessions.set(1, { version: 1, ownerId: 1, trainerId: 1, templateId: null });
    const named = (name: string) =>
      rewriteFields({ kind: '/dtt/sessions', listed: { name }, exact: { name } });
    await pull(1, { rewrite: named('2026-01-01T10:00:00 (morning)') });
    expect(await countUpdates(named('2026-01-01T10:00:00 (evening)'))).toBe(1);
  });

  it.each([
    ['2026-02-01T00:00:01.500Z', '2026-02-01T00:00:01Z'],
    ['2026-02-01T00:00:01Z', '2026-02-01T00:00:01.500Z'],
  ])('is not updated for a time of %s in the list and %s by its id', async (listed, exact) => {
    await pull(1, { rewrite: times(listed, exact) });
    expect(await countUpdates(times(listed, exact))).toBe(0);
    expect((await template()).updatedAt).toEqual(new Date(exact));
    memoryUpstream.dttTemplates.set(7, { ownerId: 1, version: 6 });
    const later = (time: string) => time.replace(':01', ':02');
    expect(await countUpdates(times(later(listed), later(exact)))).toBe(1);
    expect(await template()).toMatchObject({
      updatedAt: new Date(later(exact)),
      segments: [{ duration: 6 }],
    });
  });

  it('is updated for a change within a second if its list has fractions of a second', async () => {
    const [earlier, later] = ['2026-02-01T00:00:01.250Z', '2026-02-01T00:00:01.500Z'];
    await pull(1, { rewrite: times(earlier, earlier) });
    expect(await countUpdates(times(later, later))).toBe(1);
  });
});
