/** Accounts for tests. Each owns records of every kind; all have the same numbers of them. */

import { randomBytes } from 'node:crypto';
import { digestOf } from '../../src/auth/tokens.ts';
import type { PrismaClient } from '../../src/database/generated/prisma/client.ts';
import type { ListedType } from '../../src/database/models.ts';

export interface Account {
  readonly userId: number;
  readonly username: string;
  readonly token: string;
  /** Ids of what the account owns, newest first where order matters. */
  readonly dttDevices: readonly [number, number, number];
  readonly dttTemplates: readonly [number, number, number];
  readonly dttSessions: readonly number[];
  readonly lkbxDevices: readonly [number, number];
  readonly lockTemplates: readonly [number, number];
  /** The first is active and was started from the first lock template. */
  readonly lockSessions: readonly [number, number];
  readonly ossmDevices: readonly [number];
}

/** The ids of an account's records, by their type. */
export const recordsOf = (account: Account): Readonly<Record<ListedType, readonly number[]>> => ({
  DttDevice: account.dttDevices,
  DttTemplate: account.dttTemplates,
  DttSession: account.dttSessions,
  LkbxDevice: account.lkbxDevices,
  LockTemplate: account.lockTemplates,
  LockSession: account.lockSessions,
  OssmDevice: account.ossmDevices,
});

/** The name of the query for one record of a type; that of its list has an `s` more. */
export const fieldOf = (type: string): string => `${type.charAt(0).toLowerCase()}${type.slice(1)}`;

const minute = 60_000;
const start = Date.parse('2026-01-01T00:00:00Z');
const at = (minutes: number) => new Date(start + minutes * minute);

/** Gives a user their first token, and returns it. */
export async function addToken(database: PrismaClient, username: string): Promise<string> {
  const token = `dvt_${randomBytes(32).toString('base64url')}`;
  const digest = Buffer.from(digestOf(token), 'hex');
  await database.apiToken.create({
    data: { user: { connect: { username } }, name: 'test', slot: 1, digest },
  });
  return token;
}

/** Creates a user of the ultra tier with a token and 3 trainers, 3 templates, 6 sessions, and locks. */
export async function createAccount(database: PrismaClient, username: string): Promise<Account> {
  const user = await database.user.create({
    data: { username, subscriptionTier: 'ultra', profileTitle: `Title of ${username}` },
  });
  const { id: ownerId } = user;
  const select = { id: true };
  /** The rows get their ids in the order of the data. */
  const ids = async (rows: Promise<{ id: number }[]>) => (await rows).map(({ id }) => id);

  const devices = (kind: string, number: number, visits: readonly (Date | null)[]) =>
    visits.map((lastVisited, index) => ({
      ...{ ownerId, lastVisited },
      bubbleId: `${username}-${kind}-${index}`,
      macAddress: macAddress(ownerId, number, index),
    }));
  const dttDevices = await ids(
    database.dttDevice.createManyAndReturn({ select, data: devices('dtt', 0, [at(30), at(20), null]) }),
  );
  const lkbxDevices = await ids(
    database.lkbxDevice.createManyAndReturn({ select, data: devices('lkbx', 1, [at(30), null]) }),
  );
  const [ossm] = devices('ossm', 2, [null]);
  const { id: ossmDevice } = await database.ossmDevice.create({
    data: { ...ossm, bubbleId: `${username}-ossm`, ownerId, chip: 'ESP32-S3' },
  });

  const templates = [at(30), at(20), at(10)].map((createdDate, index) => ({
    ...{ ownerId, createdDate },
    bubbleId: `${username}-program-${index}`,
    name: `Program ${index} of ${username}`,
    isPublic: index === 0,
    targetDepth: 50,
    targetWindow: 12.5,
  }));
  const dttTemplates = await ids(database.dttTemplate.createManyAndReturn({ select, data: templates }));
  await database.dttTemplateSegment.createMany({
    data: dttTemplates.flatMap((templateId) => [
      { templateId, position: 1, type: 'training', duration: 300, repeat: 3 },
      { templateId, position: 0, type: 'warmup', duration: 60 },
    ]),
  });

  const sessions = [60, 50, 40, 30, 20, 10].map((minutes, index) => ({
    ownerId,
    bubbleId: `${username}-session-${index}`,
    name: `Session ${index} of ${username}`,
    passed: index === 0 ? null : index % 2 === 0,
    createdAt: at(minutes),
    trainerId: pick(dttDevices, index % 2),
    templateId: index === 5 ? null : pick(dttTemplates, index % 2),
  }));
  const dttSessions = await ids(database.dttSession.createManyAndReturn({ select, data: sessions }));
  await database.trainerSegment.createMany({
    data: dttSessions.flatMap((sessionId) => [
      { sessionId, order: 1, type: 'endurance', passed: true, percentGrade: 90.5, points: 10 },
      { sessionId, order: 0, type: 'repetition', passed: null, repsMeasured: 18, repsTarget: 20 },
    ]),
  });

  const starts = [at(30), at(20)];
  const locks = starts.map((createdAt, index) => ({
    ...{ ownerId, createdAt },
    name: `Lock ${index} of ${username}`,
    duration: 3600 * (index + 1),
  }));
  const lockTemplates = await ids(database.lockTemplate.createManyAndReturn({ select, data: locks }));
  const stays = starts.map((startDate, index) => ({
    ...{ ownerId, startDate },
    bubbleId: `${username}-lock-${index}`,
    publicId: `${username}-public-${index}`,
    name: `Lock session ${index} of ${username}`,
    lockState: index === 0 ? 'locked' : 'completed',
    duration: 3600,
    isActive: index === 0,
    templateId: pick(lockTemplates, index),
  }));
  const lockSessions = await ids(database.lockSession.createManyAndReturn({ select, data: stays }));
  await database.lockSegment.createMany({
    data: lockSessions.flatMap((sessionId, index) => {
      const createdAt = pick(starts, index);
      return [
        { sessionId, type: 'end', createdAt: new Date(createdAt.getTime() + minute), isLocked: false },
        { sessionId, type: 'start', createdAt, isLocked: true },
      ];
    }),
  });
  const token = await addToken(database, username);

  // The literal lists above have these lengths.
  return {
    userId: ownerId,
    username,
    token,
    dttDevices: dttDevices as [number, number, number],
    dttTemplates: dttTemplates as [number, number, number],
    dttSessions,
    lkbxDevices: lkbxDevices as [number, number],
    lockTemplates: lockTemplates as [number, number],
    lockSessions: lockSessions as [number, number],
    ossmDevices: [ossmDevice],
  };
}

/** A MAC address that no other device of the test has. */
const macAddress = (userId: number, kind: number, index: number) =>
  [2, userId >>> 24, userId >>> 16, userId >>> 8, userId, 16 * kind + index]
    .map((byte) => (byte & 255).toString(16).padStart(2, '0'))
    .join(':')
    .toUpperCase();

/** Makes a template of the account the active one, or none, without a gateway. */
export const setActive = (database: PrismaClient, account: Account, index?: 0 | 1 | 2) =>
  database.user.update({
    where: { id: account.userId },
    data: { activeTemplateId: index === undefined ? null : account.dttTemplates[index] },
  });

/** Imports a template of another user into the account's library. */
export function importTemplate(database: PrismaClient, account: Account, templateId: number) {
  return database.dttLibraryEntry.create({ data: { userId: account.userId, templateId } });
}

function pick<Item>(list: readonly Item[], index: number): Item {
  const item = list[index];
  if (item === undefined) throw new RangeError(`there is nothing at ${index}`);
  return item;
}
