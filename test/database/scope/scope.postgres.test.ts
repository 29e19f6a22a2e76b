/** Prisma's client for a viewer: what it reads, changes and refuses, where another account has rows of every kind beside theirs. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PrismaClient } from '../../../src/database/generated/prisma/client.ts';
import { scopedTo } from '../../../src/database/scope/scope.ts';
import { type Account, createAccount, importTemplate } from '../../support/accounts.ts';
import { openTestDatabase, type TestDatabase } from '../../support/gateway.ts';

let database: TestDatabase;
let alice: Account;
let bob: Account;
/** The client of alice. By its types it takes less, so that nobody writes by mistake what it refuses. */
let hers: PrismaClient;
beforeAll(async () => {
  database = await openTestDatabase();
  [alice, bob] = [await createAccount(database.client, 'alice'), await createAccount(database.client, 'bob')];
  await importTemplate(database.client, alice, bob.dttTemplates[0]);
  hers = scopedTo(database.client, { id: alice.userId }) as unknown as PrismaClient;
});
afterAll(() => database?.close());

const ids = (rows: readonly { readonly id: number }[]) => rows.map(({ id }) => id).toSorted((a, b) => a - b);
const sorted = (numbers: readonly number[]) => numbers.toSorted((a, b) => a - b);
const newestFirst = [{ createdAt: 'desc' }, { id: 'desc' }] as const;

describe('it reads rows of the viewer alone', () => {
  it('by lists, by keys, and by several keys at once', async () => {
    expect(ids(await hers.dttSession.findMany())).toEqual(sorted(alice.dttSessions));
    expect(ids(await hers.dttTemplate.findMany())).toEqual(
      sorted([...alice.dttTemplates, bob.dttTemplates[0]]),
    );
    const both = [...alice.dttDevices, ...bob.dttDevices];
    const his = scopedTo(database.client, { id: bob.userId });
    const found = await Promise.all(
      both.flatMap((id) => [hers, his].map((each) => each.dttDevice.findUnique({ where: { id } }))),
    );
    expect(found.map((row) => row?.ownerId)).toEqual([
      ...alice.dttDevices.flatMap(() => [alice.userId, undefined]),
      ...bob.dttDevices.flatMap(() => [undefined, bob.userId]),
    ]);
    const [key] = await database.client.dttDevice.findMany({ where: { ownerId: bob.userId } });
    expect(await hers.dttDevice.findUnique({ where: { bubbleId: key?.bubbleId ?? '' } })).toBeNull();
    const entry = { userId: bob.userId, templateId: bob.dttTemplates[0] };
    expect(await hers.dttLibraryEntry.findUnique({ where: { userId_templateId: entry } })).toBeNull();
    expect(
      await hers.dttLibraryEntry.findUnique({
        where: { userId_templateId: { ...entry, userId: alice.userId } },
      }),
    ).toMatchObject({ userId: alice.userId });
    await expect(hers.user.findUniqueOrThrow({ where: { id: bob.userId } })).rejects.toMatchObject({
      code: 'P2025',
    });
  });

  it('in relations at every depth, and in counts of them', async () => {
    const template = await hers.dttTemplate.findUniqueOrThrow({
      where: { id: bob.dttTemplates[0] },
      include: {
        sessions: true,
        libraryEntries: { include: { user: { include: { tokens: true, dttSessions: true } } } },
        activeOf: true,
        segments: { select: { template: { select: { sessions: true } } } },
        _count: true,
      },
    });
    expect(template.sessions).toEqual([]);
    expect(template.activeOf).toEqual([]);
    expect(template.libraryEntries.map(({ userId }) => userId)).toEqual([alice.userId]);
    expect(ids(template.libraryEntries[0]?.user.dttSessions ?? [])).toEqual(sorted(alice.dttSessions));
    expect(template.segments.map((segment) => segment.template.sessions)).toEqual([[], []]);
    expect(template._count).toEqual({ sessions: 0, activeOf: 0, libraryEntries: 1, segments: 2 });
    const { _count } = await hers.dttTemplate.findUniqueOrThrow({
      where: { id: bob.dttTemplates[0] },
      select: { _count: { select: { sessions: { where: { name: { contains: 'bob' } } } } } },
    });
    expect(_count).toEqual({ sessions: 0 });
  });

  it('in aggregates and groups', async () => {
    expect(await hers.dttSession.count()).toBe(6);
    expect(await hers.dttSession.count({ select: { _all: true, name: true } })).toEqual({ _all: 6, name: 6 });
    const { _count, _max } = await hers.dttSession.aggregate({ _count: true, _max: { id: true } });
    expect([_count, _max.id]).toEqual([6, Math.max(...alice.dttSessions)]);
    const groups = await hers.dttSession.groupBy({
      by: ['ownerId'],
      _count: { id: true },
      orderBy: { _count: { id: 'desc' } },
      having: { id: { _max: { gt: 0 } } },
    });
    expect(groups).toEqual([{ ownerId: alice.userId, _count: { id: 6 } }]);
  });

  it('by conditions on related rows, of which those of others count as missing', async () => {
    const shared = bob.dttTemplates[0];
    const sees = async (where: object) =>
      (await hers.dttTemplate.count({ where: { AND: [{ id: shared }, where] } })) === 1;
    const ofBob = { name: { contains: 'of bob' } };
    expect(await sees({ sessions: { some: ofBob } })).toBe(false);
    expect(await sees({ sessions: { some: {} } })).toBe(false);
    expect(await sees({ NOT: { sessions: { some: ofBob } } })).toBe(true);
    expect(await sees({ NOT: [{ OR: [{ sessions: { some: ofBob } }] }] })).toBe(true);
    expect(await sees({ sessions: { none: ofBob } })).toBe(true);
    expect(await sees({ sessions: { every: { name: 'none has it' } } })).toBe(true);
    expect(await sees({ owner: { username: 'bob' } })).toBe(false);
    expect(await sees({ owner: { is: { username: { startsWith: 'b' } } } })).toBe(false);
    expect(await sees({ owner: { isNot: { username: 'bob' } } })).toBe(true);
    expect(await sees({ owner: null })).toBe(true);
    expect(await sees({ owner: { is: null } })).toBe(true);
    expect(await sees({ owner: { isNot: null } })).toBe(false);
    expect(await sees({ libraryEntries: { some: { user: { tokens: { some: { name: 'test' } } } } } })).toBe(
      true,
    );
    expect(await sees({ libraryEntries: { some: { userId: bob.userId } } })).toBe(false);
    expect(await sees({ libraryEntries: { every: { userId: alice.userId } } })).toBe(true);
    // Among rows of their own, the conditions mean what they always mean.
    for (const sessions of [{ some: {} }, { none: {} }, { every: { passed: true } }, { every: {} }]) {
      const where = { ownerId: alice.userId, sessions };
      expect(ids(await hers.dttTemplate.findMany({ where }))).toEqual(
        ids(await database.client.dttTemplate.findMany({ where })),
      );
    }
  });

  it('behind a cursor, which has to be a row of theirs', async () => {
    const behind = (id: number, orderBy: object | undefined) =>
      hers.dttSession.findMany({ cursor: { id }, take: 2, skip: 1, ...(orderBy && { orderBy }) });
    for (const orderBy of [undefined, { id: 'desc' }, newestFirst]) {
      expect(await behind(alice.dttSessions[2] ?? 0, orderBy)).toHaveLength(2);
      expect(await behind(bob.dttSessions[2] ?? 0, orderBy)).toEqual([]);
      expect(await behind(1_000_000, orderBy)).toEqual([]);
    }
    const nested = (id: number) =>
      hers.user.findUniqueOrThrow({
        where: { id: alice.userId },
        select: { dttSessions: { cursor: { id }, orderBy: { id: 'asc' } } },
      });
    expect((await nested(alice.dttSessions[2] ?? 0)).dttSessions).toHaveLength(4);
    expect((await nested(bob.dttSessions[2] ?? 0)).dttSessions).toEqual([]);
    const entries = (userId: number) =>
      hers.dttLibraryEntry.findMany({
        cursor: { userId_templateId: { userId, templateId: bob.dttTemplates[0] } },
      });
    expect(await entries(alice.userId)).not.toEqual([]);
    expect(await entries(bob.userId)).toEqual([]);
    expect(await hers.dttTemplateSegment.findFirst({ cursor: { id: 1_000_000 } })).toBeNull();
  });
});

/** All rows of the database, to see that nothing has changed. */
const everything = async () => {
  const { client } = database;
  const rows = [
    await client.user.findMany({ orderBy: { id: 'asc' } }),
    await client.dttDevice.findMany({ orderBy: { id: 'asc' } }),
    await client.dttTemplate.findMany({
      orderBy: { id: 'asc' },
      include: { segments: { orderBy: { id: 'asc' } } },
    }),
    await client.dttSession.findMany({
      orderBy: { id: 'asc' },
      include: { segments: { orderBy: { id: 'asc' } } },
    }),
    await client.apiToken.findMany({ orderBy: { id: 'asc' } }),
    await client.dttLibraryEntry.findMany({ orderBy: { templateId: 'asc' } }),
  ];
  return JSON.stringify(rows, (_, value) => (typeof value === 'bigint' ? String(value) : value));
};

describe('it changes rows of the viewer alone', () => {
  const missing = { code: 'P2025' };
  it.each<[what: string, write: () => Promise<unknown>, result: object]>([
    [
      'update',
      () => hers.dttDevice.update({ where: { id: bob.dttDevices[0] }, data: { apiHits: 7 } }),
      missing,
    ],
    [
      'update of an imported template',
      () => hers.dttTemplate.update({ where: { id: bob.dttTemplates[0] }, data: { name: 'x' } }),
      missing,
    ],
    [
      'updateMany',
      () => hers.dttTemplate.updateMany({ where: { ownerId: bob.userId }, data: { name: 'x' } }),
      { count: 0 },
    ],
    [
      'updateManyAndReturn',
      () =>
        hers.dttTemplateSegment.updateManyAndReturn({
          where: { templateId: bob.dttTemplates[0] },
          data: { duration: 1 },
        }),
      [],
    ],
    ['delete', () => hers.dttSession.delete({ where: { id: bob.dttSessions[0] ?? 0 } }), missing],
    [
      'delete of an imported template',
      () => hers.dttTemplate.delete({ where: { id: bob.dttTemplates[0] } }),
      missing,
    ],
    ['deleteMany', () => hers.apiToken.deleteMany({ where: { userId: bob.userId } }), { count: 0 }],
  ])('by %s', async (_, write, result) => {
    const before = await everything();
    expect(await write().catch((error: { code: string }) => ({ code: error.code }))).toEqual(result);
    expect(await everything()).toBe(before);
  });

  it('and connects rows that the viewer sees', async () => {
    const [id = 0] = alice.dttSessions;
    const connect = (template: number) =>
      hers.dttSession.update({ where: { id }, data: { template: { connect: { id: template } } } });
    expect(await connect(bob.dttTemplates[0])).toMatchObject({ templateId: bob.dttTemplates[0] });
    const before = await everything();
    for (const hidden of [bob.dttTemplates[1], 1_000_000])
      await expect(connect(hidden)).rejects.toMatchObject({ code: 'P2025' });
    expect(await everything()).toBe(before);
    expect(
      await hers.dttSession.update({ where: { id }, data: { template: { disconnect: true } } }),
    ).toMatchObject({ templateId: null });
  });

  it('creates rows that belong to the viewer', async () => {
    const bubbleId = 'hers';
    const device = await hers.dttDevice.create({ data: { bubbleId } as never, include: { owner: true } });
    expect(device.owner.id).toBe(alice.userId);
    const session = await hers.dttSession.create({
      data: {
        bubbleId,
        trainer: { connect: { id: device.id } },
        segments: { create: [{ type: 'bounce', order: 0 }] },
      } as never,
      include: { segments: true },
    });
    expect(session).toMatchObject({ ownerId: alice.userId, trainerId: device.id, segments: [{ order: 0 }] });
    expect(
      await hers.lkbxDevice.createManyAndReturn({ data: [{ bubbleId: 'a' }, { bubbleId: 'b' }] as never }),
    ).toMatchObject([{ ownerId: alice.userId }, { ownerId: alice.userId }]);
    const upsert = (bubble: string) =>
      hers.ossmDevice.upsert({
        where: { bubbleId: bubble },
        create: { bubbleId: bubble, chip: 'a' } as never,
        update: { chip: 'b' },
      });
    expect(await upsert('new')).toMatchObject({ ownerId: alice.userId, chip: 'a' });
    expect(await upsert('new')).toMatchObject({ ownerId: alice.userId, chip: 'b' });
    // The key is taken, as for a row of their own that they do not know.
    await expect(upsert('bob-ossm')).rejects.toMatchObject({ code: 'P2002' });
    expect(await database.client.ossmDevice.findUnique({ where: { bubbleId: 'bob-ossm' } })).toMatchObject({
      chip: 'ESP32-S3',
    });
  });

  it('in a transaction, which is undone after an error', async () => {
    const before = await everything();
    const write = hers.$transaction(async (client) => {
      const own = await client.user.updateMany({ data: { rank: 7 } });
      expect(own).toEqual({ count: 1 });
      expect(await client.user.count()).toBe(1);
      await expect(client.user.findMany({ cursor: { id: alice.userId } })).rejects.toThrow(
        'takes no cursors',
      );
      await client.$queryRaw`SELECT 1`;
    });
    await expect(write).rejects.toThrow('$queryRaw is not restricted to the viewer');
    expect(await everything()).toBe(before);
  });
});

it('reads no details in a mirror, which may not have them yet', async () => {
  const mirror = scopedTo(database.client, { id: alice.userId }, true);
  expect(await mirror.dttSession.count()).toBeGreaterThan(0);
  const message = 'A mirror may not have each TrainerSegment yet';
  await expect(mirror.trainerSegment.count()).rejects.toThrow(message);
  await expect(mirror.dttSession.findMany({ include: { segments: true } })).rejects.toThrow(message);
});

describe('it refuses what it cannot restrict', () => {
  const data = { bubbleId: 'x' };
  const note = /Write a field as t\.field\(toOne\(DttTemplate, 'templateId'\)\)/;
  it.each<[what: string, use: () => Promise<unknown>, message: string | RegExp]>([
    ['SQL', () => hers.$queryRawUnsafe('SELECT 1'), '$queryRaw'],
    ['SQL that writes', () => hers.$executeRaw`SELECT 1`, '$executeRaw'],
    ['a model without a condition', () => hers.rateLimit.findMany(), 'who may see a RateLimit'],
    [
      'a relation to one',
      () => hers.user.findMany({ include: { mirrored: true } }),
      'who may see a MirroredAccount',
    ],
    [
      'a link to a row that may be hidden',
      () => hers.dttSession.findMany({ include: { template: true } }),
      note,
    ],
    [
      'the same below',
      () => hers.user.findMany({ select: { dttSessions: { select: { template: true } } } }),
      note,
    ],
    ['an order by it', () => hers.dttSession.findMany({ orderBy: [{ template: { name: 'asc' } }] }), note],
    [
      'an order by how many rows others have',
      () => hers.dttTemplate.findMany({ orderBy: { sessions: { _count: 'asc' } } }),
      'DttTemplate.sessions has rows',
    ],
    ['a count from a cursor', () => hers.dttSession.count({ cursor: { id: 1 } }), 'count takes no cursor'],
    [
      'what it does not know',
      () => hers.user.findMany({ relationLoadStrategy: 'join' } as never),
      'relationLoadStrategy',
    ],
    [
      'another owner',
      () => hers.dttDevice.create({ data: { ...data, ownerId: bob.userId } }),
      'says whose row it is',
    ],
    [
      'another owner of several',
      () => hers.dttDevice.createMany({ data: [{ ...data, ownerId: bob.userId }] }),
      'says whose row it is',
    ],
    [
      'a new owner',
      () => hers.dttDevice.updateMany({ data: { ownerId: bob.userId } }),
      'says whose row it is',
    ],
    ['a new id of the viewer', () => hers.user.updateMany({ data: { id: 1 } }), 'says whose row it is'],
    [
      'a key without its relation',
      () => hers.dttSession.updateMany({ data: { templateId: 1 } }),
      'connect the relation',
    ],
    [
      'a part of something else',
      () => hers.trainerSegment.create({ data: { sessionId: 1, type: 'x', order: 9 } }),
      'together with what it is a part of',
    ],
    [
      'a part that moves',
      () => hers.trainerSegment.update({ where: { id: 1 }, data: { session: { connect: { id: 1 } } } }),
      'says whose row it is',
    ],
    [
      'writes below others',
      () => hers.user.update({ where: { id: 1 }, data: { dttSessions: { deleteMany: {} } } }),
      'takes no deleteMany',
    ],
    [
      'links from the other side',
      () => hers.dttTemplate.update({ where: { id: 1 }, data: { sessions: { connect: { id: 1 } } } }),
      'takes no connect',
    ],
  ])('%s', async (_, use, message) => {
    const before = await everything();
    await expect(use()).rejects.toThrow(message);
    expect(await everything()).toBe(before);
  });
});
