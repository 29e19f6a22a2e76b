/** Prisma's client for a viewer: what it reads and refuses, where another account has rows of every kind beside theirs. */

import { describe, expect, it } from 'vitest';
import type { PrismaClient } from '../../../src/database/generated/prisma/client.ts';
import { scopedTo } from '../../../src/database/scope/scope.ts';
import { createAccount, importTemplate } from '../../support/accounts.ts';
import { databaseWith } from '../../support/setUp.ts';

const { database, alice, bob } = await databaseWith('alice', 'bob');
await importTemplate(database.client, alice, bob.dttTemplates[0]);
/** The client of alice. By its types it takes less, so that nobody writes by mistake what it refuses. */
const hers = scopedTo(database.client, { id: alice.userId }) as unknown as PrismaClient;

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
    const unnamed = await hers.dttSession.findFirst({ include: { owner: { omit: { username: true } } } });
    expect(unnamed?.owner).not.toHaveProperty('username');
    await expect(hers.user.findUniqueOrThrow({ where: { id: bob.userId } })).rejects.toMatchObject({
      code: 'P2025',
    });
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
    const one = { dttSessions: { where: { id: alice.dttSessions[0] ?? 0 } } };
    const counted = await hers.user.findMany({ select: { _count: { select: one } } });
    expect(counted).toEqual([{ _count: { dttSessions: 1 } }]);
    const where = { id: bob.dttTemplates[0] };
    const shared = await hers.dttTemplate.findUnique({ where, select: { _count: true } });
    expect(shared?._count).toMatchObject({ sessions: 0, libraryEntries: 1 });
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
    const conditions: object[] = [
      ...[{ some: {} }, { none: {} }, { every: { passed: true } }, { every: {} }, { some: { OR: [] } }],
      ...[{ every: { name: undefined } }, { every: { AND: [], NOT: [{}] } }],
    ].map((sessions) => ({ sessions }));
    const all = { sessions: { every: {} } };
    const nested = [{ NOT: all }, { OR: [{ id: 0 }, all] }, { NOT: { OR: [all] } }];
    for (const condition of [...conditions, ...nested, { OR: [] }, { AND: [] }, { NOT: { OR: [] } }]) {
      const where = { ownerId: alice.userId, ...condition };
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

/** Carries out an operation, such as `user.count`. The types of Prisma follow from names that are known. */
async function carryOut(name: string, args: object): Promise<unknown> {
  const [model = '', operation = ''] = name.split('.');
  const delegates = hers as unknown as Record<string, Record<string, (args: object) => Promise<unknown>>>;
  return delegates[model]?.[operation]?.(args);
}

it('reads no details in a mirror, which may not have them yet', async () => {
  const mirror = scopedTo(database.client, { id: alice.userId }, ['DttTemplateSegment', 'TrainerSegment']);
  expect(await mirror.dttSession.count()).toBeGreaterThan(0);
  const message = 'Each TrainerSegment may come after its record';
  await expect(mirror.trainerSegment.count()).rejects.toThrow(message);
  await expect(mirror.dttSession.findMany({ include: { segments: true } })).rejects.toThrow(message);
});

describe('it refuses what it cannot restrict', () => {
  const note = "Write a field as t.field(toOne(DttTemplate, 'templateId'))";
  it.each<[name: string, args: object, message: string]>([
    ['rateLimit.findMany', {}, 'who may see a RateLimit'],
    ['user.findMany', { include: { mirrored: true } }, 'who may see a MirroredAccount'],
    ['dttSession.findMany', { include: { template: true } }, note],
    ['user.findMany', { select: { dttSessions: { select: { template: true } } } }, note],
    ['dttSession.findMany', { orderBy: [{ template: { name: 'asc' } }] }, note],
    ['dttTemplate.findMany', { orderBy: { sessions: { _count: 'asc' } } }, 'has rows that'],
    ['dttSession.count', { cursor: { id: 1 } }, 'count takes no cursor'],
    ['user.findMany', { relationLoadStrategy: 'join' }, 'relationLoadStrategy is not restricted'],
    ...['create', 'createMany', 'createManyAndReturn', 'update', 'updateMany', 'updateManyAndReturn'].map(
      (each): [string, object, string] => [`dttDevice.${each}`, { data: {} }, `takes no ${each}`],
    ),
    ['dttDevice.upsert', { where: { id: 1 }, create: {}, update: {} }, 'takes no upsert'],
    ['dttDevice.delete', { where: { id: 1 } }, 'takes no delete'],
    ['apiToken.deleteMany', {}, 'takes no deleteMany'],
  ])('such as %s of %j', async (name, args, message) => {
    await expect(carryOut(name, args)).rejects.toThrow(message);
  });

  it('such as SQL', async () => {
    await expect(hers.$queryRawUnsafe('SELECT 1')).rejects.toThrow('$queryRawUnsafe is not restricted');
    await expect(hers.$executeRaw`SELECT 1`).rejects.toThrow('$executeRaw is not restricted');
  });
});

it('the answer to no condition depends on rows of others', async () => {
  const [carol, dave] = [
    await createAccount(database.client, 'carol'),
    await createAccount(database.client, 'dave'),
  ];
  await importTemplate(database.client, carol, dave.dttTemplates[0]);
  const client = scopedTo(database.client, { id: carol.userId });
  const rows: object[] = [
    {},
    { NOT: {} },
    { AND: [] },
    { OR: [] },
    { name: undefined },
    { OR: [], name: 'x' },
    { passed: true },
    { OR: [{}, { name: 'x' }] },
    { NOT: [{ OR: [] }] },
    { template: { sessions: { every: { name: 'x' } } } },
  ];
  const conditions = rows.flatMap((row) =>
    ['every', 'some', 'none'].flatMap((kind) => {
      const sessions = { sessions: { [kind]: row } };
      return [
        sessions,
        { NOT: sessions },
        { OR: [{ id: 0 }, sessions] },
        { NOT: { OR: [sessions, { id: 0 }] } },
      ];
    }),
  );
  const answers = async () => {
    const found: unknown[] = [];
    for (const where of conditions) found.push([where, await client.dttTemplate.count({ where })]);
    return found;
  };
  const before = await answers();
  await database.client.dttSession.deleteMany({ where: { ownerId: dave.userId } });
  expect(await answers()).toEqual(before);
});
