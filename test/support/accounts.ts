/** Accounts for tests. Each owns records of every kind; all have the same numbers of them. */

import { randomBytes } from 'node:crypto';
import { digestOf } from '../../src/auth/tokens.ts';
import { hasField } from '../../src/database/dataModel.ts';
import type { PrismaClient } from '../../src/database/generated/prisma/client.ts';
import { type ListedType, listedTypes } from '../../src/database/models.ts';

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

/** A selection of the viewer, and of so many records of each other type, with their segments. @param selected what is selected of each. */
export const everyType = (first: number, selected: string): string =>
  [
    `viewer { ${selected} }`,
    ...listedTypes.map((type) => {
      const segments = hasField(type, 'segments') ? `segments { ${selected} }` : '';
      return `${fieldOf(type)}s(first: ${first}) { nodes { ${selected} ${segments} } }`;
    }),
  ].join(' ');

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
  const owner = { ownerId: user.id };
  // Prisma begins a query when it is awaited, so the rows get their ids in this order.
  const ids = async (rows: Promise<{ id: number }>[]) => {
    const found: number[] = [];
    for (const row of rows) found.push((await row).id);
    return found;
  };

  const dttDevices = await ids(
    [at(30), at(20), null].map((lastVisited, index) =>
      database.dttDevice.create({
        data: {
          ...owner,
          bubbleId: `${username}-dtt-${index}`,
          macAddress: macAddress(user.id, 0, index),
          lastVisited,
        },
      }),
    ),
  );
  const dttTemplates = await ids(
    [at(30), at(20), at(10)].map((createdDate, index) =>
      database.dttTemplate.create({
        data: {
          ...owner,
          bubbleId: `${username}-program-${index}`,
          name: `Program ${index} of ${username}`,
          isPublic: index === 0,
          targetDepth: 50,
          targetWindow: 12.5,
          createdDate,
          segments: {
            create: [
              { position: 1, type: 'training', duration: 300, repeat: 3 },
              { position: 0, type: 'warmup', duration: 60 },
            ],
          },
        },
      }),
    ),
  );
  const dttSessions = await ids(
    [60, 50, 40, 30, 20, 10].map((minutes, index) =>
      database.dttSession.create({
        data: {
          ...owner,
          bubbleId: `${username}-session-${index}`,
          name: `Session ${index} of ${username}`,
          passed: index === 0 ? null : index % 2 === 0,
          createdAt: at(minutes),
          trainerId: pick(dttDevices, index % 2),
          templateId: index === 5 ? null : pick(dttTemplates, index % 2),
          segments: {
            create: [
              { order: 1, type: 'endurance', passed: true, percentGrade: 90.5, points: 10 },
              { order: 0, type: 'repetition', passed: null, repsMeasured: 18, repsTarget: 20 },
            ],
          },
        },
      }),
    ),
  );
  const lkbxDevices = await ids(
    [at(30), null].map((lastVisited, index) =>
      database.lkbxDevice.create({
        data: {
          ...owner,
          bubbleId: `${username}-lkbx-${index}`,
          macAddress: macAddress(user.id, 1, index),
          lastVisited,
        },
      }),
    ),
  );
  const lockTemplates = await ids(
    [at(30), at(20)].map((createdAt, index) =>
      database.lockTemplate.create({
        data: { ...owner, name: `Lock ${index} of ${username}`, duration: 3600 * (index + 1), createdAt },
      }),
    ),
  );
  const lockSessions = await ids(
    [at(30), at(20)].map((startDate, index) =>
      database.lockSession.create({
        data: {
          ...owner,
          bubbleId: `${username}-lock-${index}`,
          publicId: `${username}-public-${index}`,
          name: `Lock session ${index} of ${username}`,
          lockState: index === 0 ? 'locked' : 'completed',
          duration: 3600,
          startDate,
          isActive: index === 0,
          templateId: pick(lockTemplates, index),
          segments: {
            create: [
              { type: 'end', createdAt: new Date(startDate.getTime() + minute), isLocked: false },
              { type: 'start', createdAt: startDate, isLocked: true },
            ],
          },
        },
      }),
    ),
  );
  const ossmDevices = await ids([
    database.ossmDevice.create({
      data: {
        ...owner,
        bubbleId: `${username}-ossm`,
        macAddress: macAddress(user.id, 2, 0),
        chip: 'ESP32-S3',
      },
    }),
  ]);
  const token = await addToken(database, username);

  // The literal lists above have these lengths.
  return {
    userId: user.id,
    username,
    token,
    dttDevices: dttDevices as [number, number, number],
    dttTemplates: dttTemplates as [number, number, number],
    dttSessions,
    lkbxDevices: lkbxDevices as [number, number],
    lockTemplates: lockTemplates as [number, number],
    lockSessions: lockSessions as [number, number],
    ossmDevices: ossmDevices as [number],
  };
}

/** A MAC address that no other device of the test has. */
const macAddress = (userId: number, kind: number, index: number) =>
  [2, userId >>> 24, userId >>> 16, userId >>> 8, userId, 16 * kind + index]
    .map((byte) => (byte & 255).toString(16).padStart(2, '0'))
    .join(':')
    .toUpperCase();

/** Imports a template of another user into the account's library. */
export function importTemplate(database: PrismaClient, account: Account, templateId: number) {
  return database.dttLibraryEntry.create({ data: { userId: account.userId, templateId } });
}

function pick(ids: readonly number[], index: number): number {
  const id = ids[index];
  if (id === undefined) throw new RangeError(`there is no id at ${index}`);
  return id;
}
