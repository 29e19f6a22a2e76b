/** How one account is refreshed, with mocks in place of its runs and a clock that the test sets. */

import pLimit from 'p-limit';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ListsRead } from '../../src/mirror/accountFreshness.ts';
import {
  type AccountRuns,
  createMirroredAccount,
  type MirroredAccount,
} from '../../src/mirror/mirroredAccount.ts';
import type { FreshnessStore, StoredFreshness } from '../../src/mirror/storedFreshness.ts';
import { createBudget } from '../../src/upstream/budget.ts';

const interval = 60_000;
const credential = { token: 'alice', viewer: { id: 1, tokenId: undefined } };

const lists = vi.fn<AccountRuns['lists']>();
const noteChanged = vi.fn<AccountRuns['noteChanged']>();
const session = vi.fn<AccountRuns['session']>();
const readStored = vi.fn<FreshnessStore['read']>();
const noteStoredWrite = vi.fn<FreshnessStore['noteWrite']>();
const clearWrite = vi.fn<FreshnessStore['clearWrite']>();
const onFailure = vi.fn();
const onTokenStatus = vi.fn();
let account: MirroredAccount;

/** The report of a run that begins now. */
const succeed = async (isPart = false): Promise<ListsRead> => ({
  began: Date.now(),
  isPart,
});

/** What the database stores, by the same clock. */
const stored = (refreshedAt?: number, isLeased = false): StoredFreshness => ({
  refreshedAt,
  age: Date.now() - (refreshedAt ?? Date.now()),
  writtenAt: undefined,
  isLeased,
});

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date', 'performance', 'setTimeout', 'clearTimeout'], now: 0 });
  vi.advanceTimersByTime(10_000);
  vi.resetAllMocks();
  lists.mockImplementation((_upstream, _signal, _advanced, parts) => succeed(parts !== undefined));
  readStored.mockImplementation(async () => stored(account.freshness.refreshedAt));
  clearWrite.mockResolvedValue();
  noteChanged.mockResolvedValue();
  session.mockResolvedValue();
  noteStoredWrite.mockResolvedValue(undefined);
  account = createMirroredAccount({
    id: 1,
    base: 'http://127.0.0.1:9/api/v1',
    timing: {},
    budget: createBudget(0),
    withActivationLock: (run) => run(),
    inTurn: pLimit(1),
    runs: { lists, details: async () => {}, noteChanged, session, skipped: () => 0 },
    freshnessStore: { read: readStored, noteWrite: noteStoredWrite, clearWrite },
    interval,
    idle: 10 * interval,
    onChanged() {},
    onSuccess() {},
    onFailure,
    onTokenStatus,
  });
  account.add(credential);
});
afterEach(async () => {
  await account.close();
  vi.useRealTimers();
});

/** The lists that each run was asked to read. */
const parts = () => lists.mock.calls.map(([, , , which]) => which ?? 'all');

describe('an account of the mirror', () => {
  it('is read at a request, then at each interval until there was no request for a while, and at the next request', async () => {
    await account.touch();
    expect(lists).toHaveBeenCalledTimes(1);
    for (let times = 2; times <= 11; times++) {
      await vi.advanceTimersByTimeAsync(interval);
      expect(lists).toHaveBeenCalledTimes(times);
    }
    await vi.advanceTimersByTimeAsync(5 * interval);
    expect(lists).toHaveBeenCalledTimes(11);
    await account.touch();
    expect(lists).toHaveBeenCalledTimes(12);
  });

  it('is read once if a request comes while the database is asked whether a run is due', async () => {
    await account.touch();
    const { refreshedAt: before } = account.freshness;
    let settle = () => {};
    readStored.mockImplementation(
      () =>
        new Promise((resolve) => {
          settle = () => resolve(stored(before));
        }),
    );
    await vi.advanceTimersByTimeAsync(interval);
    expect(readStored).toHaveBeenCalledTimes(1);
    expect(account.touch()).toBeUndefined();
    expect(lists).toHaveBeenCalledTimes(1);
    settle();
    await vi.advanceTimersByTimeAsync(0);
    expect(lists).toHaveBeenCalledTimes(2);
    await vi.advanceTimersByTimeAsync(interval - 1);
    expect(lists).toHaveBeenCalledTimes(2);
  });

  it('is not read while another process refreshes it', async () => {
    readStored.mockImplementation(async () => stored(Date.now()));
    await account.freshness.ensureLoaded();
    expect(account.touch()).toBeUndefined();
    await vi.advanceTimersByTimeAsync(5 * interval);
    expect(lists).not.toHaveBeenCalled();
  });

  it('is read whole at first, then only the requested lists, and lists requested together by one run', async () => {
    await account.refresh(['locks']);
    await account.refresh(['dttTemplates']);
    const together = [account.refresh(['lkbxDevices']), account.refresh(['locks'])];
    expect(await Promise.all(together)).toEqual([true, true]);
    expect(parts()).toEqual(['all', ['dttTemplates'], ['lkbxDevices', 'locks']]);
  });

  it('is read whole at each interval, however often some of its lists are read', async () => {
    await account.touch();
    for (let times = 1; times <= 9; times++) {
      await vi.advanceTimersByTimeAsync(interval / 3);
      account.touch();
      await account.refresh(['dttTemplates']);
    }
    expect(parts().filter((which) => which === 'all')).toHaveLength(4);
  });

  it('has its token confirmed by each run, which asks whose it is', async () => {
    await account.refresh();
    await account.refresh(['dttTemplates']);
    expect(onTokenStatus.mock.calls).toEqual([
      [credential, 'valid', performance.now()],
      [credential, 'valid', performance.now()],
    ]);
  });

  it('has its token confirmed as of the beginning of a run, since it may have been revoked later', async () => {
    const began = performance.now();
    lists.mockImplementationOnce(async () => {
      vi.advanceTimersByTime(5_000);
      return { began: Date.now(), isPart: false };
    });
    await account.refresh();
    expect(onTokenStatus.mock.calls).toEqual([[credential, 'valid', began]]);
  });

  it('is read at once with another of its tokens if the token of the run ends', async () => {
    const end = new AbortController();
    const ending = { token: 'second of alice', viewer: { id: 1, tokenId: undefined, ended: end.signal } };
    account.add(ending);
    lists.mockImplementationOnce(
      (_upstream, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason));
        }),
    );
    const refreshed = account.refresh();
    await vi.advanceTimersByTimeAsync(0);
    account.remove(ending);
    end.abort();
    expect(await refreshed).toBe(true);
    expect(parts()).toEqual(['all', 'all']);
    expect(onTokenStatus.mock.calls).toEqual([[credential, 'valid', performance.now()]]);
    expect(onFailure).not.toHaveBeenCalled();
  });

  it('is read by one more run for all lists that are requested during a run', async () => {
    await account.refresh();
    let settle = () => {};
    lists.mockImplementationOnce(
      () =>
        new Promise((resolve) => {
          settle = () => resolve({ began: Date.now(), isPart: true });
        }),
    );
    const first = account.refresh(['locks']);
    await vi.advanceTimersByTimeAsync(0);
    const later = [account.refresh(['locks']), account.refresh(['dttTemplates'])];
    settle();
    expect(await Promise.all([first, ...later])).toEqual([true, true, true]);
    expect(parts()).toEqual(['all', ['locks'], ['locks', 'dttTemplates']]);
  });

  it('has the lists of a run that failed read by the next run, whichever lists that is for', async () => {
    await account.refresh();
    lists.mockRejectedValueOnce(new Error('the upstream is away'));
    account.freshness.noteWrite();
    expect(await account.refresh(['locks'])).toBe(false);
    expect(onFailure).toHaveBeenCalledTimes(1);
    vi.advanceTimersByTime(10);
    account.freshness.noteWrite();
    expect(await account.refresh(['dttTemplates'])).toBe(true);
    expect(parts().at(-1)).toEqual(['locks', 'dttTemplates']);
    expect(account.freshness.isOutdated).toBe(false);
  });

  it('is read at once when a run of another process is over that has not refreshed it', async () => {
    await account.refresh();
    const refreshedAt = account.freshness.refreshedAt;
    lists.mockResolvedValueOnce(undefined);
    readStored.mockResolvedValueOnce(stored(refreshedAt, true)).mockResolvedValueOnce(stored(refreshedAt));
    const from = performance.now();
    expect(await account.refresh(['locks'])).toBe(true);
    expect(performance.now() - from).toBeLessThan(2_000);
    expect(parts()).toEqual(['all', ['locks'], ['locks']]);
  });

  it('is not read again if the run of another process has refreshed it', async () => {
    lists.mockResolvedValueOnce(undefined);
    readStored.mockResolvedValueOnce(stored(Date.now()));
    expect(await account.refresh()).toBe(true);
    expect(lists).toHaveBeenCalledTimes(1);
  });

  it('is not read again if the run of another process has refreshed it, and a request has found that out first', async () => {
    lists.mockResolvedValueOnce(undefined);
    const run = account.touch();
    await vi.advanceTimersByTimeAsync(1);
    readStored.mockResolvedValue(stored(Date.now()));
    account.freshness.markStale();
    await account.freshness.ensureLoaded();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await run).toBe(true);
    expect(lists).toHaveBeenCalledTimes(1);
  });

  it('is read again if the run of another process began before a client asked for fresher data', async () => {
    lists.mockResolvedValueOnce(undefined);
    const began = Date.now();
    readStored.mockResolvedValueOnce(stored(began, true)).mockResolvedValueOnce(stored(began));
    expect(await account.refresh(undefined, began + 1)).toBe(true);
    expect(lists).toHaveBeenCalledTimes(2);
  });

  it('has a write recorded in the database, and removed there once a run of the written lists has read it', async () => {
    await account.refresh();
    vi.advanceTimersByTime(10);
    noteStoredWrite.mockResolvedValueOnce({ writtenAt: 7, previous: undefined });
    clearWrite.mockClear();
    await account.noteWrite({ parts: ['locks'] });
    expect(account.freshness.isOutdated).toBe(true);
    expect(clearWrite).not.toHaveBeenCalled();
    vi.advanceTimersByTime(10);
    await account.refresh(['dttTemplates']);
    // The run has read what was written.
    expect(parts().at(-1)).toEqual(['locks', 'dttTemplates']);
    expect(clearWrite.mock.calls).toEqual([[7, 7]]);
    expect(account.freshness.isOutdated).toBe(false);
  });

  it('is read at once after a write if clients use what is here, and by the next use otherwise', async () => {
    await account.refresh();
    await account.noteWrite({ parts: ['locks'] });
    await vi.advanceTimersByTimeAsync(interval / 2);
    expect(parts()).toEqual(['all']);
    account.touch();
    await account.noteWrite({ parts: ['dttTemplates'] });
    await vi.advanceTimersByTimeAsync(0);
    expect(parts()).toEqual(['all', ['locks', 'dttTemplates']]);
  });

  it('has a session that was written pending at once, and read before the lists, again if that fails', async () => {
    await account.refresh();
    const written = { id: 5, isDeleted: true };
    await account.noteWrite({ parts: ['dttTemplates'], session: written });
    expect(noteChanged.mock.calls).toEqual([[5]]);
    expect(session).not.toHaveBeenCalled();
    session.mockRejectedValueOnce(new Error('the upstream is away'));
    expect(await account.refresh(['dttTemplates'])).toBe(false);
    expect(await account.refresh(['dttTemplates'])).toBe(true);
    expect(await account.refresh(['dttTemplates'])).toBe(true);
    expect(session.mock.calls.map(([, read]) => read)).toEqual([written, written]);
    expect(account.freshness.isOutdated).toBe(false);
  });

  it('is read whole after a write if a write of another process has not been read back', async () => {
    await account.refresh();
    noteStoredWrite.mockResolvedValueOnce({ writtenAt: 8, previous: 7 });
    await account.noteWrite({ parts: ['locks'] });
    await account.refresh(['locks']);
    expect(parts()).toEqual(['all', 'all']);
    expect(clearWrite).toHaveBeenLastCalledWith(0, Date.now());
  });
});
