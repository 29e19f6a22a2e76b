/** How one account is refreshed, and what requests wait for, with mocks in place of its runs and a clock that the test sets. */

import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import pLimit from 'p-limit';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createSignal } from '../../../../src/database/waiting.ts';
import { type Budget, createBudget } from '../../../../src/extensions/upstream/client/budget.ts';
import { createTurns } from '../../../../src/extensions/upstream/client/turns.ts';
import { UpstreamBusy } from '../../../../src/extensions/upstream/client/upstream.ts';
import { messages } from '../../../../src/extensions/upstream/messages.ts';
import type {
  FreshnessStore,
  StoredFreshness,
  Written,
} from '../../../../src/extensions/upstream/mirror/accountFreshness.ts';
import { freshnessOf, waitUntilFresh } from '../../../../src/extensions/upstream/mirror/freshness.ts';
import {
  closeAccount,
  createMirroredAccount,
  type MirroredAccount,
  noteWrite,
  refresh,
  touch,
  upstreamFor,
} from '../../../../src/extensions/upstream/mirror/mirroredAccount.ts';
import type { AccountRuns } from '../../../../src/extensions/upstream/mirror/sync.ts';
import { openExchange } from '../../../../src/http/exchange.ts';
import { nobodyListens } from '../../../support/exchanges.ts';
import { openScripted, reply } from '../support/scripted.ts';

const interval = 60_000;
const credential = { token: 'alice', viewer: { id: 1, tokenId: undefined, scope: 'activate' } as const };

const lists = vi.fn<AccountRuns['lists']>();
const details = vi.fn<AccountRuns['details']>();
const readStored = vi.fn<() => Promise<StoredFreshness>>();
const storeWrite = vi.fn<FreshnessStore['storeWrite']>();
const onChanged = vi.fn();
const onFailure = vi.fn();
const onRejected = vi.fn();
let account: MirroredAccount;
let budget: Budget;
let base: string;

/** The mark of the last write in the database, and the last number of one. */
let mark: number | undefined;
let marks = 0;

/** A run that begins now. */
const succeed: AccountRuns['lists'] = async (_upstream, _signal, { mark: read }) => {
  if (mark === read) mark = undefined;
  return Date.now();
};

/** What the database stores, by the same clock. */
const stored = (refreshedAt?: number, isLeased = false): StoredFreshness => ({
  refreshedAt,
  age: Date.now() - (refreshedAt ?? Date.now()),
  mark,
  isLeased,
});

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date', 'performance', 'setTimeout', 'clearTimeout'], now: 0 });
  vi.advanceTimersByTime(10_000);
  vi.resetAllMocks();
  lists.mockImplementation(succeed);
  details.mockResolvedValue();
  readStored.mockImplementation(async () => stored(account.freshness.refreshedAt));
  mark = undefined;
  budget = createBudget(1_000);
  storeWrite.mockImplementation(async () => {
    const previous = mark;
    mark = ++marks;
    return { mark, previous };
  });
  base = 'http://127.0.0.1:9/api/v1';
  account = open();
  account.credentials.add(credential);
});
const open = () =>
  createMirroredAccount({
    base,
    isConfigured: false,
    timing: {},
    budget,
    inTurn: pLimit(1),
    onDemand: createTurns()(),
    runs: { lists, details, skipped: () => 0, progress: () => 7 },
    stored: { read: readStored, storeWrite },
    interval,
    idle: 10 * interval,
    onChanged,
    onSuccess() {},
    onFailure,
    onRejected,
  });
afterEach(() => closeAccount(account));

/** The lists that each run was asked to read. */
const parts = () => lists.mock.calls.map(([, , { onlyTemplates }]) => (onlyTemplates ? 'templates' : 'all'));

const write = (what: Written) => noteWrite(account, what);

describe('an account of the mirror', () => {
  it('is read at a request, then at each interval until there was no request for a while, and at the next request', async () => {
    await touch(account);
    expect(lists).toHaveBeenCalledTimes(1);
    for (let times = 2; times <= 11; times++) {
      await vi.advanceTimersByTimeAsync(interval);
      expect(lists).toHaveBeenCalledTimes(times);
    }
    await vi.advanceTimersByTimeAsync(5 * interval);
    expect(lists).toHaveBeenCalledTimes(11);
    await touch(account);
    expect(lists).toHaveBeenCalledTimes(12);
  });

  it('has no more details read either when there was no request for a while, or when another process has read its lists', async () => {
    details.mockImplementation(
      (_, signal) => new Promise((end) => signal.addEventListener('abort', () => end())),
    );
    const reads = () => [details.mock.calls.length, details.mock.lastCall?.[1].aborted];
    await touch(account);
    await vi.advanceTimersByTimeAsync(10 * interval);
    expect(reads()).toEqual([11, false]);
    await vi.advanceTimersByTimeAsync(interval);
    expect(reads()).toEqual([11, true]);
    await touch(account);
    expect(reads()).toEqual([12, false]);
    readStored.mockImplementation(async () => stored(Date.now()));
    await vi.advanceTimersByTimeAsync(interval);
    expect(reads()).toEqual([12, true]);
  });

  it('is not read while another process refreshes it', async () => {
    readStored.mockImplementation(async () => stored(Date.now()));
    await account.freshness.ensureLoaded();
    expect(touch(account)).toBeUndefined();
    await vi.advanceTimersByTimeAsync(5 * interval);
    expect(lists).not.toHaveBeenCalled();
  });

  it('is read whole at first, then only its templates if only those were written, and once for several writes', async () => {
    await write('template');
    await refresh(account);
    await write('template');
    await refresh(account);
    await Promise.all([write('other'), write('template')]);
    expect(await Promise.all([refresh(account), refresh(account)])).toEqual([true, true]);
    expect(parts()).toEqual(['all', 'templates', 'all']);
  });

  it('is read whole at each interval, however often its templates are read', async () => {
    await touch(account);
    for (let times = 1; times <= 9; times++) {
      await vi.advanceTimersByTimeAsync(interval / 3);
      touch(account);
      await write('template');
      await vi.advanceTimersByTimeAsync(1);
    }
    expect(parts().filter((which) => which === 'all')).toHaveLength(4);
    // Each run, and each write, reads it once.
    expect(readStored.mock.calls.length).toBeLessThan(30);
  });

  it('is read again at the next interval, and not before, if a run fails', async () => {
    lists.mockRejectedValue(new Error('the upstream is away'));
    await touch(account);
    await vi.advanceTimersByTimeAsync(interval - 1);
    expect(lists).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(lists).toHaveBeenCalledTimes(2);
  });

  it('is read at once with another of its tokens if the token of the run ends', async () => {
    const end = new AbortController();
    const ending = { token: 'second of alice', viewer: { ...credential.viewer, ended: end.signal } };
    account.credentials.add(ending);
    lists.mockImplementationOnce(
      (_upstream, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason));
        }),
    );
    const refreshed = refresh(account);
    await vi.advanceTimersByTimeAsync(0);
    account.credentials.delete(ending);
    end.abort();
    expect(await refreshed).toBe(true);
    expect(parts()).toEqual(['all', 'all']);
    expect(onRejected).not.toHaveBeenCalled();
    expect(onFailure).not.toHaveBeenCalled();
  });

  it('is read by one more run for all that is written during a run', async () => {
    await refresh(account);
    await write('template');
    const { promise, settle } = createSignal();
    lists.mockImplementationOnce((...run) => promise.then(() => succeed(...run)));
    const first = refresh(account);
    await vi.advanceTimersByTimeAsync(0);
    await write('template');
    await write('other');
    const later = [refresh(account), refresh(account)];
    settle();
    expect(await Promise.all([first, ...later])).toEqual([true, true, true]);
    expect(parts()).toEqual(['all', 'templates', 'all']);
  });

  it('has the lists of a run that failed read by the next run', async () => {
    await refresh(account);
    lists.mockRejectedValueOnce(new Error('the upstream is away'));
    await write('other');
    expect(await refresh(account)).toBe(false);
    expect(onFailure).toHaveBeenCalledTimes(1);
    await write('template');
    expect(await refresh(account)).toBe(true);
    expect(parts().at(-1)).toBe('all');
    expect(account.freshness.isOutdated).toBe(false);
  });

  it('is read at once when a run of another process is over that has not refreshed it', async () => {
    await refresh(account);
    await write('template');
    readStored.mockResolvedValueOnce(stored(account.freshness.refreshedAt, true));
    const from = performance.now();
    expect(await refresh(account)).toBe(true);
    expect(performance.now() - from).toBeLessThan(2_000);
    expect(parts()).toEqual(['all', 'templates']);
  });

  it.each([false, true])(
    'is not read if the run of another process has refreshed it, also if that began meanwhile: %s',
    async (isMeanwhile) => {
      if (isMeanwhile) lists.mockResolvedValueOnce(undefined);
      readStored
        .mockResolvedValueOnce(stored(undefined, !isMeanwhile))
        .mockResolvedValueOnce(stored(Date.now()));
      expect(await refresh(account)).toBe(true);
      expect(lists).toHaveBeenCalledTimes(isMeanwhile ? 1 : 0);
      // Its rows may have changed, and the announcement may be late.
      expect(onChanged).toHaveBeenCalledTimes(1);
    },
  );

  it('is read again if the run of another process began before a client asked for fresher data', async () => {
    const began = Date.now();
    vi.advanceTimersByTime(1);
    readStored.mockResolvedValueOnce(stored(began, true)).mockResolvedValueOnce(stored(began));
    // Another request, which does not ask for that, changes nothing.
    expect(await Promise.all([refresh(account, began + 1), refresh(account)])).toEqual([true, true]);
    expect(lists).toHaveBeenCalledTimes(1);
  });

  it('is read at once after a write if clients use what is here, and by the next use otherwise', async () => {
    await refresh(account);
    await write('template');
    await vi.advanceTimersByTimeAsync(interval / 2);
    expect(parts()).toEqual(['all']);
    touch(account);
    await write('template');
    await vi.advanceTimersByTimeAsync(0);
    expect(parts()).toEqual(['all', 'templates']);
  });

  it('has as many requests in flight by GraphQL as by REST, and its token is rejected for certain by one path', async () => {
    const upstream = await openScripted();
    upstream.respond = (_request, response) => reply(response, 401, {});
    base = upstream.base;
    account = open();
    account.credentials.add(credential);
    for (const path of ['/users/me', '/dtt'])
      await expect(upstreamFor(account)?.get(path)).rejects.toThrow('does not accept the token');
    expect(budget.delayFor(999)).toBeGreaterThan(0);
    expect(onRejected.mock.calls).toEqual([
      [credential, true],
      [credential, false],
    ]);
    upstream.requests.length = 0;
    upstream.respond = () => {};
    const stop = new AbortController();
    const posts = Array.from({ length: 217 }, () =>
      upstreamFor(account)?.post('/dtt/templates/1', {}, stop.signal),
    );
    await expect(Promise.race(posts)).rejects.toBeInstanceOf(UpstreamBusy);
    await vi.waitFor(() => expect(upstream.requests).toHaveLength(16), { interval: 5, timeout: 20_000 });
    stop.abort();
    await Promise.allSettled(posts);
    upstream.close();
  });

  it.each([true, false])(
    'is read whole after a write if another process has forwarded one that was not read back, before it: %s',
    async (isBefore) => {
      await refresh(account);
      const others = () => {
        mark = ++marks;
      };
      if (isBefore) others();
      await write('template');
      if (!isBefore) others();
      await refresh(account);
      expect(parts()).toEqual(['all', 'all']);
      expect(account.freshness.isOutdated).toBe(false);
    },
  );

  it.each([
    ['a run does not read back', true],
    ['the database does not take either', false],
  ])(
    'is outdated by a write that %s, until a run that began after it has read the lists',
    async (_, isStored) => {
      await refresh(account);
      vi.advanceTimersByTime(1);
      const { promise, settle } = createSignal();
      lists.mockImplementationOnce((...run) => promise.then(() => succeed(...run)));
      const before = refresh(account, performance.now());
      await vi.advanceTimersByTimeAsync(0);
      if (!isStored) storeWrite.mockRejectedValueOnce(new Error('the database is away'));
      await write('template');
      settle();
      expect(parts()).toEqual(['all', 'all']);
      expect([await before, account.freshness.isOutdated]).toEqual([true, true]);
      await refresh(account);
      const last = isStored ? 'templates' : 'all';
      expect([account.freshness.isOutdated, parts().at(-1)]).toEqual([false, last]);
    },
  );

  it('is outdated by a write until the database was read after it, whatever was read before', async () => {
    const [noted, found] = [createSignal(), createSignal()];
    storeWrite.mockImplementationOnce(() => noted.promise.then(() => ({ mark: 6, previous: undefined })));
    readStored.mockImplementationOnce(() => found.promise.then(() => stored(5)));
    const reading = account.freshness.reload();
    const noting = write('template');
    mark = 6;
    noted.settle();
    found.settle();
    await reading;
    expect(account.freshness.isOutdated).toBe(true);
    await noting;
    expect(account.freshness.isOutdated).toBe(true);
    mark = undefined;
    await account.freshness.reload();
    expect(account.freshness.isOutdated).toBe(false);
  });

  it('has its freshness read once for all who ask, and again if it may have changed since or during a read', async () => {
    const { ensureLoaded, markStale } = account.freshness;
    await Promise.all([ensureLoaded(), ensureLoaded()]);
    await ensureLoaded();
    expect(readStored).toHaveBeenCalledTimes(1);
    markStale();
    const reading = ensureLoaded();
    markStale();
    await Promise.all([reading, ensureLoaded()]);
    expect(readStored).toHaveBeenCalledTimes(3);
    markStale();
    readStored.mockRejectedValueOnce(new Error('the database is away'));
    await expect(ensureLoaded()).rejects.toThrow('the database is away');
    await ensureLoaded();
    expect(readStored).toHaveBeenCalledTimes(5);
  });
});

it.each([
  [undefined, undefined],
  ['no-store', undefined],
  ['no-store, No-Cache', 0],
  ['max-age=30', 30_000],
  ['no-transform, max-age = "30" , x', 30_000],
  ['x-max-age=9, max-age=x, max-age=9s', undefined],
  ['max-age,no-cache ,x', 0],
  ['a,max-age=30,b', 30_000],
  ['x-no-cache, max-stale=9', undefined],
])('Cache-Control: %s limits the age in milliseconds to %s', (header, milliseconds) => {
  expect(freshnessOf(header)).toBe(milliseconds);
});

describe('a request that wants what is new', () => {
  const waits = { arrival: 50, freshness: 50, awakening: 20, forwarding: 50, announcement: 50 };
  /** The outcome of a request: the age, or the response if it is not served from the mirror. */
  async function request(headers = { 'cache-control': 'no-cache' }) {
    const incoming = Object.assign(new IncomingMessage(new Socket()), { headers, url: '/' });
    const exchange = openExchange(incoming, new ServerResponse(incoming), nobodyListens);
    const response = waitUntilFresh(exchange, account, waits);
    await vi.advanceTimersByTimeAsync(100);
    const { status, headers: more, body } = (await response) ?? {};
    return { age: exchange.headers.Age, status, again: more?.['Retry-After'], body: body?.toString() };
  }
  const rejected = (body: string) => ({ age: undefined, status: 503, again: '5', body: `${body}\n` });

  it('is rejected with 503 if the account is forgotten while the request waits for a refresh', async () => {
    await touch(account);
    await vi.advanceTimersByTimeAsync(1_000);
    readStored.mockImplementation(async () => stored());
    lists.mockResolvedValue(undefined);
    expect(await request()).toEqual(rejected(`${messages.accountArriving}: 7 records so far`));
  });

  it('is rejected with 503 while no token can read its account, or nothing reads back what a client has written', async () => {
    account.credentials.clear();
    expect(await request()).toEqual(rejected(messages.accountUnread));
    account.credentials.add(credential);
    lists.mockRejectedValueOnce(new Error('the upstream is away'));
    expect(await request()).toEqual(rejected(`${messages.accountArriving}: 7 records so far`));
    lists.mockImplementationOnce((...run) => vi.advanceTimersByTimeAsync(40).then(() => succeed(...run)));
    expect(await request()).toEqual({ age: '0' });
    lists.mockRejectedValue(new Error('the upstream is away'));
    await write('other');
    expect(await request({ 'cache-control': 'max-age=9' })).toEqual(rejected(messages.accountOutdated));
  });

  it('does not wait for a refresh that the budget does not allow, nor for one that takes too long', async () => {
    await touch(account);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await request({ 'cache-control': 'max-age=9' })).toEqual({ age: '1' });
    budget.pauseFor(60_000);
    expect(await request()).toEqual({ age: '1' });
    expect(parts()).toEqual(['all']);
    await vi.advanceTimersByTimeAsync(60_000);
    const { promise, settle } = createSignal();
    lists.mockImplementation((...run) => promise.then(() => succeed(...run)));
    expect(await request()).toEqual({ age: '1' });
    expect(parts()).toEqual(['all', 'all', 'all']);
    settle();
  });
});
