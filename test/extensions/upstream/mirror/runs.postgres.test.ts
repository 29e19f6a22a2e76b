/** The runs of one account, against an upstream in memory that fails for some of its records. */

import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { inTransaction, type Transaction } from '../../../../src/database/transaction.ts';
import { createSignal } from '../../../../src/database/waiting.ts';
import { createBudget } from '../../../../src/extensions/upstream/client/budget.ts';
import {
  Unauthorized,
  Unavailable,
  type Upstream,
  UpstreamBusy,
  UpstreamRejection,
} from '../../../../src/extensions/upstream/client/upstream.ts';
import {
  createFreshnessStore,
  storeRead,
} from '../../../../src/extensions/upstream/mirror/accountFreshness.ts';
import { createDetailsOnDemand } from '../../../../src/extensions/upstream/mirror/details.ts';
import { whileLeased } from '../../../../src/extensions/upstream/mirror/run.ts';
import { type AccountRuns, createRuns } from '../../../../src/extensions/upstream/mirror/sync.ts';
import { mirrorOfMemory, missing, upstreamOf } from '../support/memoryUpstream.ts';

/** How many sessions there are: more than a run writes at once. */
const sessions = 30;
const failed = { failure: 'failed' };
const { signal } = new AbortController();
const lines: string[] = [];
const logger = pino({ base: null, timestamp: false }, { write: (line) => void lines.push(line) });

const requests: string[] = [];
let upstream: Upstream;
let runs: AccountRuns;
/** The response or the error for a path in place of the upstream's own; undefined leaves that. */
let instead: (path: string, own: unknown) => unknown;

const { database, memory, pull } = await mirrorOfMemory(1, 2);
beforeEach(() => {
  addSessions(1, sessions);
  requests.length = 0;
  instead = () => undefined;
  upstream = upstreamOf(memory, 1, requests, async (path, own) => {
    const other = await instead(path, own);
    return other === undefined ? own : other;
  });
  runs = createRuns(database.pool, 1, logger);
  vi.useFakeTimers({ toFake: ['Date', 'performance'] });
});

function addSessions(from: number, to: number, version = 1): void {
  for (let id = from; id <= to; id++)
    memory.dttSessions.set(id, { version, ownerId: 1, trainerId: 1, templateId: null });
}

const readLists = () => runs.lists(upstream, signal, {});

/** One run that reads the lists, and one that reads the details which lists leave out. */
async function refresh(): Promise<void> {
  await readLists();
  await runs.details(upstream, signal).catch(() => {});
}

const pending = () => database.client.dttSession.count({ where: { detailsPending: true } });
const anHour = 60 * 60_000;

const unavailable = new Unavailable('no', failed);

/** The id of the session that a path is of; NaN for any other path. */
const idOf = (path: string) => Number(/^\/dtt\/sessions\/(\d+)$/.exec(path)?.[1]);

describe('details that a client asks for', () => {
  const budget = { ...createBudget(0), available: () => 2, delayFor: (count: number) => count * 7_000 };
  const accountOf = async () => ({ upstream, budget });
  const fetchDetails = createDetailsOnDemand({ pool: database.pool, logger, accountOf });
  const viewer = { id: 1, tokenId: undefined, scope: 'activate' } as const;
  const fetch = (...ids: number[]) => fetchDetails(viewer, 'DttSession', ids);
  beforeEach(async () => {
    await readLists();
    requests.length = 0;
  });

  it('are not requested beyond the budget, and the client is told when all of them may be', async () => {
    await expect(fetch(1, 2, 3, 4, 5)).rejects.toThrow(
      'The details of 3 records are not here yet; try again in 21 s',
    );
    expect(requests.toSorted()).toEqual(['/dtt/sessions/1', '/dtt/sessions/2']);
    instead = (path) => (idOf(path) === 4 ? new UpstreamBusy('busy', failed, 9) : undefined);
    await expect(fetch(3, 4)).rejects.toThrow('The details of 2 records are not here yet; try again in 9 s');
    expect(await pending()).toBe(sessions - 3);
  });

  it('are requested for each of two accounts that ask at once', async () => {
    memory.dttTemplates.set(7, { version: 1, ownerId: 1 });
    memory.users.get(2)?.imports.add(7);
    for (const id of [1, 2]) await pull(id, { listsOnly: true });
    instead = () => vi.waitFor(() => void expect(requests).toHaveLength(2), 10_000);
    await Promise.all([1, 2].map((id) => fetchDetails({ ...viewer, id }, 'DttTemplate', [7])));
    expect(requests).toHaveLength(2);
  });

  it('are requested once for all who ask at once, and again for those who ask after its list has changed', async () => {
    const { promise, settle } = createSignal();
    instead = (path) => (idOf(path) === 1 ? promise : undefined);
    const before = [fetch(1), fetch(1)];
    await sleep(100);
    addSessions(1, 1, 2);
    await readLists();
    const after = fetch(1);
    await sleep(100);
    settle();
    await Promise.all([...before, after]);
    const segment = await database.client.trainerSegment.findFirst({ where: { sessionId: 1 } });
    expect([await pending(), segment?.repsMeasured]).toEqual([sessions - 1, 2]);
    expect(requests.filter((path) => idOf(path) === 1)).toHaveLength(2);
  });
});

describe('a record that cannot be read by its id', () => {
  it('is not requested again for an hour, while the others are read', async () => {
    const unauthorized = new Unauthorized('no', failed);
    const responses = [missing, { id: 30 }, null, unauthorized, unavailable, unavailable, unavailable];
    const broken = new Map<string, unknown>(
      responses.map((response, index) => [`/dtt/sessions/${1 + 4 * index}`, response]),
    );
    const count = broken.size;
    instead = (path) => broken.get(path);
    await refresh();
    expect(await pending()).toBe(count);
    for (let times = 0; times < 3; times++) {
      vi.advanceTimersByTime(10 * 60_000);
      await refresh();
    }
    const requestCounts = () =>
      [...broken.keys()].map((path) => requests.filter((each) => each === path).length);
    expect(requestCounts()).toEqual(Array(count).fill(1));
    expect(runs.skipped()).toBe(count);
    vi.advanceTimersByTime(anHour);
    instead = () => undefined;
    await refresh();
    expect(requestCounts()).toEqual(Array(count).fill(2));
    expect([await pending(), runs.skipped()]).toEqual([0, 0]);
  });

  it('is given up if the upstream responds with 404 again an hour later, and not before', async () => {
    instead = (path) => (idOf(path) > 0 ? missing : undefined);
    await refresh();
    vi.advanceTimersByTime(anHour / 2);
    await refresh();
    expect(await pending()).toBe(sessions);
    vi.advanceTimersByTime(anHour / 2 + 1);
    await refresh();
    expect(await pending()).toBe(0);
  });

  it('is removed by the next run if it was deleted upstream, however far down the list it was', async () => {
    addSessions(sessions + 1, 150);
    await readLists();
    memory.dttSessions.delete(7);
    await runs.details(upstream, signal);
    await refresh();
    expect(await pending()).toBe(0);
    expect(await database.client.dttSession.count()).toBe(149);
    for (const id of [151, 152]) {
      addSessions(id, id);
      await refresh();
    }
    requests.length = 0;
    await refresh();
    expect(requests.filter((path) => path.startsWith('/dtt/sessions'))).toHaveLength(1);
  });

  it('does not fail the run, and stays until it can be checked, if the list lacks it, unless the upstream is busy', async () => {
    await refresh();
    memory.dttSessions.delete(sessions);
    instead = (path) => (idOf(path) === sessions ? unavailable : undefined);
    expect(await readLists()).toBeDefined();
    instead = (path) => (idOf(path) === sessions ? { id: sessions } : undefined);
    await readLists();
    expect(runs.skipped()).toBe(1);
    instead = (path) => (idOf(path) === sessions ? new UpstreamBusy('busy', failed, 9) : undefined);
    await expect(readLists()).rejects.toThrow('busy');
    expect(await database.client.dttSession.count()).toBe(sessions);
    instead = () => undefined;
    await refresh();
    expect(await database.client.dttSession.count()).toBe(sessions - 1);
  });

  it('does not prevent older records from being read, even if it is one of several among the newest', async () => {
    const broken = sessions - 8;
    instead = (path) => (idOf(path) > broken ? unavailable : undefined);
    for (let times = 0; times < 4; times++) await refresh();
    expect(await pending()).toBe(sessions - broken);
  });

  it('ends the run after a few requests if no other record can be read either', async () => {
    instead = (path) => (idOf(path) > 0 ? unavailable : undefined);
    await refresh();
    expect(requests.filter((path) => idOf(path) > 0).length).toBeLessThan(10);
    expect(await pending()).toBe(sessions);
  });
});

describe('a session that is missing from the list', () => {
  it('is removed if it was deleted and among the newest hundred, and not checked if it was older', async () => {
    addSessions(sessions + 1, 150);
    await refresh();
    const gone = [...Array.from({ length: 20 }, (_, index) => 100 + index), 150, 7];
    for (const id of gone) memory.dttSessions.delete(id);
    requests.length = 0;
    await refresh();
    const ids = (await database.client.dttSession.findMany()).map(({ id }) => id);
    expect(gone.filter((id) => ids.includes(id))).toEqual([7]);
    expect(ids).toHaveLength(150 - gone.length + 1);
    expect(requests.filter((path) => path.startsWith('/dtt/sessions/'))).toHaveLength(gone.length - 1);
  });

  it('is removed also if it was the oldest, where the list has one page', async () => {
    await refresh();
    memory.dttSessions.delete(1);
    await refresh();
    expect(await database.client.dttSession.findUnique({ where: { id: 1 } })).toBeNull();
  });

  it('stays if the upstream still has it by its id, and the run checks no other missing session then', async () => {
    await refresh();
    instead = (path, own) =>
      path.startsWith('/dtt/sessions?') ? { data: Object(own).data.slice(10) } : undefined;
    requests.length = 0;
    await refresh();
    expect(requests.filter((path) => path.startsWith('/dtt/sessions/'))).toHaveLength(1);
    expect(await database.client.dttSession.count()).toBe(sessions);
  });
});

it('what is missing is removed from a complete list, after a record that the list hides, and from a record', async () => {
  for (const id of [1, 2, 3]) memory.dttDevices.set(id, { version: 1, ownerId: 1 });
  memory.lockSessions.set(1, { version: 1, ownerId: 1, isActive: false });
  await readLists();
  expect(await database.client.lockSegment.count()).toBe(1);
  for (const id of [1, 3]) memory.dttDevices.delete(id);
  instead = (path, own) => {
    if (path.startsWith('/dtt?')) return { data: [] };
    return path.startsWith('/lkbx/sessions?')
      ? { data: [{ ...Object(own).data[0], LockSegment: [] }] }
      : undefined;
  };
  await readLists();
  expect(await database.client.dttDevice.findMany()).toMatchObject([{ id: 2 }]);
  expect(await database.client.lockSegment.count()).toBe(0);
});

it('a session that is not valid counts as left out, also after runs that read only the newest sessions', async () => {
  addSessions(sessions + 1, 150);
  // Points are whole numbers.
  addSessions(7, 7, 0.5);
  for (let times = 0; times < 2; times++) {
    requests.length = 0;
    await refresh();
    expect(runs.skipped()).toBe(1);
  }
  expect(requests.filter((path) => path.startsWith('/dtt/sessions'))).toHaveLength(1);
});

describe('a list that the upstream forbids', () => {
  const forbidden = new UpstreamRejection('no', { ...failed, status: 403 }, 'Forbidden');
  const wasRefreshed = async () =>
    (await createFreshnessStore(database.pool, 1).read()).refreshedAt !== undefined;

  it('is skipped if it is optional, and its stored records stay', async () => {
    for (let id = 1; id <= 5; id++) {
      memory.lockTemplates.set(id, { version: 1, ownerId: 1 });
      memory.lockSessions.set(id, { version: 1, ownerId: 1, isActive: id === 5 });
    }
    Object.assign(memory.users.get(1) ?? {}, { activeLockTemplate: 5 });
    await refresh();
    const unknown = new UpstreamRejection('no', { ...failed, status: 400 }, 'Lock template not found');
    const rejections: [string, UpstreamRejection][] = [
      ['/lkbx/sessions', forbidden],
      ['/lkbx/templates/active', forbidden],
      ['/lkbx/templates/active', unknown],
      ['/lkbx/templates', forbidden],
    ];
    for (const [index, [path, rejection]] of rejections.entries()) {
      instead = (each) => (each.split('?', 1)[0] === path ? rejection : undefined);
      addSessions(sessions + 1, sessions + 1 + index);
      requests.length = 0;
      await refresh();
      expect(await database.client.dttSession.count(), path).toBe(sessions + 1 + index);
      expect(await database.client.lockSession.count()).toBe(5);
      expect(await database.client.lockSession.count({ where: { templateId: 5 } })).toBe(1);
      expect(await database.client.lockTemplate.count()).toBe(5);
      expect(requests.filter((each) => /^\/lkbx\/(sessions|templates)\/\d/.test(each))).toEqual([]);
    }
  });

  it('fails the run if it is required', async () => {
    instead = (path) => (path.startsWith('/dtt?') ? forbidden : undefined);
    await expect(readLists()).rejects.toThrow('no');
    expect(await wasRefreshed()).toBe(false);
    instead = () => undefined;
    await refresh();
    expect(await wasRefreshed()).toBe(true);
    instead = (path) => (path.startsWith('/dtt?') ? forbidden : undefined);
    await expect(readLists()).rejects.toThrow('no');
    // The user.
    expect(runs.progress()).toBe(1);
  });
});

it('the log says once that a mirror is in step, and what each run has changed', async () => {
  lines.length = 0;
  memory.lockSessions.set(1, { version: 1, ownerId: 1, isActive: true });
  await readLists();
  await readLists();
  addSessions(2, 3, 2);
  memory.dttSessions.delete(sessions);
  await readLists();
  const changed = (changes: number, count: number) => ({
    level: 30,
    changes,
    requests: count,
    msg: 'mirror refreshed',
  });
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    { level: 30, msg: 'mirror in step' },
    changed(sessions + 1, 10),
    changed(3, 12),
  ]);
});

it('lists count as read when their run began, however long the database takes to store that', async () => {
  await readLists();
  const transaction: Transaction = (write) =>
    vi.advanceTimersByTimeAsync(5_000).then(() => inTransaction(database.pool, write));
  await storeRead(transaction, 1, { began: performance.now(), mark: undefined, hasAllSessions: false });
  // The clocks of both processes round.
  expect((await createFreshnessStore(database.pool, 1).read()).age).toBeGreaterThan(4_990);
});

it('a write has another mark than the one before, whatever the clock says', async () => {
  await readLists();
  const { storeWrite } = createFreshnessStore(database.pool, 1);
  await database.pool.query(`UPDATE "MirroredAccount" SET "writtenAt" = now() + interval '1 hour'`);
  const { mark, previous } = await storeWrite('other');
  expect(Number(mark) - Number(previous)).toBe(1);
});

it('a run keeps its lease for as long as it takes, and renews it no more once it has failed', async () => {
  await readLists();
  const { pool } = database;
  const fail = () => sleep(600).then(() => Promise.reject(new Error('broken')));
  const query = vi.spyOn(pool, 'query');
  const failing = whileLeased(pool, 1, fail, 300);
  await sleep(450);
  expect(await whileLeased(pool, 1, async () => {})).toBe(false);
  await expect(failing).rejects.toThrow('broken');
  // Besides the three that take it, in vain as well, and give it back: a renewal that is late must not end it.
  expect(query.mock.calls.length - 3).toBeGreaterThan(600 / 300);
  query.mockClear();
  await sleep(150);
  expect(query).not.toHaveBeenCalled();
});
