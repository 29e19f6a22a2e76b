/** An upstream in memory, with several accounts that see some of each other's records. It needs no network. */

import { beforeEach } from 'vitest';
import { type Upstream, UpstreamRejection } from '../../../../src/extensions/upstream/client/upstream.ts';
import { type SyncOptions, type SyncReport, sync } from '../../../../src/extensions/upstream/mirror/sync.ts';
import { databaseWith } from '../../../support/setUp.ts';

/** A record: its owner, and a version that stands for the values of its other fields. */
interface Owned {
  ownerId: number;
  version: number;
}

interface User {
  username: string;
  imports: Set<number>;
  activeTemplate: number | null;
  activeLockTemplate: number | null;
}

export const createMemoryUpstream = () => ({
  users: new Map<number, User>(),
  dttDevices: new Map<number, Owned>(),
  lockTemplates: new Map<number, Owned>(),
  lockSessions: new Map<number, Owned & { isActive: boolean }>(),
  dttTemplates: new Map<number, Owned & { isPrivate?: boolean }>(),
  dttSessions: new Map<number, Owned & { trainerId: number; templateId: number | null }>(),
});
export type MemoryUpstream = ReturnType<typeof createMemoryUpstream>;

export function addUser({ users }: MemoryUpstream, id: number, username = `user ${id}`): void {
  users.set(id, { username, imports: new Set(), activeTemplate: null, activeLockTemplate: null });
}

/** A later version has a later instant. */
const instant = (version: number) => new Date(Date.UTC(2026, 0, 1) + version * 1000).toISOString();

/** The ids of the account's templates, owned and imported. */
export function templatesOf({ users, dttTemplates }: MemoryUpstream, userId: number): number[] {
  const imports = users.get(userId)?.imports;
  return [...dttTemplates]
    .filter(([id, { ownerId }]) => ownerId === userId || imports?.has(id))
    .map(([id]) => id)
    .sort((a, b) => a - b);
}

/**
 * What is given for a path in place of the upstream's own response. An error is thrown, in place of an error as well.
 * It is called when the upstream has made its response, and before the client gets it.
 */
export type Respond = (path: string, own: unknown) => unknown;

/** Changes each record in the list of a path. */
export const listed =
  (list: string, change: (record: { id: number }) => object): Respond =>
  (path, own) =>
    path.startsWith(`${list}?`) ? { ...Object(own), data: Object(own).data.map(change) } : own;

/** The error for a record that an account does not have. */
export const missing = new UpstreamRejection('no', { failure: 'failed', status: 404 }, 'not found');

/** The upstream client of an account. @param requests gets the path of every request. */
export function upstreamOf(
  memoryUpstream: MemoryUpstream,
  userId: number,
  requests: string[] = [],
  respond: Respond = (_path, own) => own,
): Upstream {
  const ownedIn = (records: ReadonlyMap<number, Owned>) =>
    [...records].filter(([, { ownerId }]) => ownerId === userId).map(([id]) => id);

  /** By path: the ids that the account sees, and a record, which is whole by its id and shorter in lists. */
  const resources: Record<
    string,
    { ids: () => number[]; record: (id: number, isWhole: boolean) => unknown }
  > = {
    '/dtt': {
      ids: () => ownedIn(memoryUpstream.dttDevices),
      record(id) {
        const device = found(memoryUpstream.dttDevices, id);
        return {
          id,
          bubbleId: `device-${id}`,
          ownerId: device.ownerId,
          serialNumber: `serial ${device.version}`,
        };
      },
    },
    '/dtt/templates': {
      ids: () => templatesOf(memoryUpstream, userId),
      record(id, isWhole) {
        const { ownerId, version, isPrivate = false } = found(memoryUpstream.dttTemplates, id);
        return {
          id,
          bubbleId: `template-${id}`,
          ownerId,
          name: `template ${id}, version ${version}`,
          isPublic: !isPrivate,
          isActive: found(memoryUpstream.users, userId).activeTemplate === id,
          handsFreeMode: false,
          targetDepth: 1,
          targetWindow: 1,
          createdDate: instant(id),
          updatedAt: instant(version),
          ...(isWhole && { Segment: [{ id: id * 10, type: 'warmup', duration: version, repeat: 1 }] }),
        };
      },
    },
    '/dtt/sessions': {
      ids: () => ownedIn(memoryUpstream.dttSessions).reverse(),
      record(id, isWhole) {
        const { version, trainerId, templateId } = found(memoryUpstream.dttSessions, id);
        return {
          id,
          bubble_id: `session-${id}`,
          name: `version ${version}`,
          passed: true,
          created_at: instant(id),
          trainer_id: trainerId,
          settings_id: templateId,
          TrainerSegment: [
            {
              id: id * 10,
              type: 'bounce',
              points: version,
              ...(isWhole && { repsMeasured: version, order: 0 }),
            },
          ],
        };
      },
    },
    '/lkbx/templates': {
      ids: () => ownedIn(memoryUpstream.lockTemplates),
      record(id) {
        const { ownerId, version } = found(memoryUpstream.lockTemplates, id);
        const flags = { isRandomDuration: false, isBreakEnabled: false, isEmergencyUnlockEnabled: true };
        return { id, ownerId, name: `lock ${version}`, duration: version, ...flags, createdAt: instant(id) };
      },
    },
    '/lkbx/sessions': {
      ids: () => ownedIn(memoryUpstream.lockSessions),
      record(id) {
        const { ownerId, version, isActive } = found(memoryUpstream.lockSessions, id);
        return {
          id,
          bubbleId: `lock-${id}`,
          publicId: `public-${id}`,
          ownerId,
          lockState: isActive ? 'locked' : 'completed',
          duration: version,
          startDate: instant(id),
          isActive,
          LockSegment: [{ id: id * 10, type: 'start', createdAt: instant(version), isLocked: true }],
        };
      },
    },
  };

  function ownResponse(path: string): unknown {
    const { pathname, searchParams } = new URL(path, 'http://upstream');
    const user = memoryUpstream.users.get(userId);
    if (pathname === '/users/me' && user)
      return { id: userId, username: user.username, subscriptionTier: 'ultra' };
    const list = resources[pathname];
    if (list) {
      const [limit, offset] = [Number(searchParams.get('limit')), Number(searchParams.get('offset'))];
      const page = list.ids().slice(offset, offset + limit);
      return { data: page.map((id) => list.record(id, false)), pagination: { limit, offset } };
    }
    if (pathname === '/lkbx/templates/active')
      return user?.activeLockTemplate ? { id: user.activeLockTemplate } : null;
    const [, parent = '', id] = /^(.*)\/(\d+)$/.exec(pathname) ?? [];
    const resource = resources[parent];
    if (resource?.ids().includes(Number(id))) return resource.record(Number(id), true);
    return missing;
  }

  return {
    base: 'http://upstream/api/v1',
    isConfigured: true,
    requestCount: () => requests.length,
    async get(path) {
      requests.push(path);
      const own = ownResponse(path);
      // Later changes of a record must not change a response.
      const given = await respond(path, own instanceof Error ? own : structuredClone(own));
      if (given instanceof Error) throw given;
      return given;
    },
    post: () => Promise.reject(new Error('nothing is to be written')),
  };
}

function found<Value>(values: ReadonlyMap<number, Value>, id: number): Value {
  const value = values.get(id);
  if (value === undefined) throw new Error(`there is no ${id}`);
  return value;
}

interface PullOptions extends Partial<SyncOptions> {
  readonly requests?: string[];
  readonly respond?: Respond;
}

/** An upstream with these users and an empty mirror of it for each test of a file, and a function that pulls an account. */
export async function mirrorOfMemory(...userIds: readonly number[]) {
  const memory = createMemoryUpstream();
  const { database } = await databaseWith();
  const { pool } = database;
  beforeEach(async () => {
    await pool.query('TRUNCATE "Mirror", "User", "DttTemplate" CASCADE');
    for (const records of Object.values(memory)) records.clear();
    for (const id of userIds) addUser(memory, id);
  });
  const pull = (id: number, { requests, respond, ...options }: PullOptions = {}) =>
    run({ pool, upstream: upstreamOf(memory, id, requests, respond), ...options });
  return { database, memory, pull };
}

/** A run that no other one prevents. */
export async function run(options: SyncOptions): Promise<SyncReport> {
  const report = await sync(options);
  if (!report) throw new Error('another run is under way');
  return report;
}
