/** How fresh an account is, with a mock in place of the database. */

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createSignal } from '../../../../src/database/waiting.ts';
import {
  type AccountFreshness,
  createAccountFreshness,
} from '../../../../src/extensions/upstream/mirror/accountFreshness.ts';
import { allParts } from '../../../../src/extensions/upstream/mirror/pull.ts';
import type {
  FreshnessStore,
  StoredFreshness,
} from '../../../../src/extensions/upstream/mirror/storedFreshness.ts';

/** What the database stores; its clock is `ahead` of the one here by so many milliseconds. */
const stored = (refreshedAt?: number, mark?: number, ahead = 0): StoredFreshness => ({
  refreshedAt,
  age: refreshedAt === undefined ? 0 : Date.now() + ahead - refreshedAt,
  mark,
  isLeased: false,
});
const read = vi.fn<() => Promise<StoredFreshness>>();
const storeWrite = vi.fn<FreshnessStore['storeWrite']>();
const onChanged = vi.fn();
let freshness: AccountFreshness;

/** Has a run read lists that begins now. */
function run(began: number, isWhole = true): void {
  freshness.begin(isWhole).end(performance.now(), began);
}
beforeEach(() => {
  // Both clocks show the same time, until a test sets one.
  vi.useFakeTimers({ toFake: ['Date', 'performance'], now: 0 });
  vi.advanceTimersByTime(10_000);
  vi.clearAllMocks();
  read.mockResolvedValue(stored());
  freshness = createAccountFreshness({ read, storeWrite }, onChanged);
});
afterEach(() => {
  vi.useRealTimers();
});

describe('the freshness of an account', () => {
  it('is read from the database once for all callers, and again after it was marked as stale', async () => {
    read.mockResolvedValue(stored(5));
    await Promise.all([freshness.ensureLoaded(), freshness.ensureLoaded()]);
    await freshness.ensureLoaded();
    expect([freshness.refreshedAt, read.mock.calls.length]).toEqual([5, 1]);
    read.mockResolvedValue(stored());
    freshness.markStale();
    await freshness.ensureLoaded();
    expect([freshness.refreshedAt, read.mock.calls.length]).toEqual([undefined, 2]);
  });

  it('is read again for a caller that comes after it was marked as stale during a read, whose result may be from before', async () => {
    read.mockResolvedValueOnce(stored(5));
    const reading = freshness.ensureLoaded();
    freshness.markStale();
    await Promise.all([reading, freshness.ensureLoaded()]);
    expect([freshness.refreshedAt, read.mock.calls.length]).toEqual([undefined, 2]);
  });

  it('announces each run, and once that another process has refreshed or removed the account', async () => {
    run(5);
    run(6, false);
    expect(onChanged).toHaveBeenCalledTimes(2);
    for (const found of [stored(7), stored()]) {
      read.mockResolvedValue(found);
      onChanged.mockClear();
      await freshness.reload();
      await freshness.reload();
      expect(onChanged).toHaveBeenCalledTimes(1);
    }
  });

  it('is outdated from a write until a run that began after it; a run of some lists leaves the time of the last refresh', async () => {
    run(1);
    const { refreshedAt } = freshness;
    expect(freshness.isOutdated).toBe(false);
    const begun = freshness.begin(true);
    read.mockResolvedValue(stored(1, 6));
    storeWrite.mockResolvedValueOnce({ mark: 6, previous: undefined });
    await freshness.noteWrite({ parts: ['locks'] });
    expect(freshness.isOutdated).toBe(true);
    // Its lists may have been read before the write.
    begun.end(performance.now(), 1);
    expect(freshness.isOutdated).toBe(true);
    vi.advanceTimersByTime(5);
    run(3, false);
    expect([freshness.isOutdated, freshness.refreshedAt]).toEqual([false, refreshedAt]);
  });

  it('is outdated by a write that the database does not take, until a run that began after it has read all lists', async () => {
    run(1);
    const begun = freshness.begin(true);
    storeWrite.mockRejectedValueOnce(new Error('the database is away'));
    await expect(freshness.noteWrite({ parts: ['locks'] })).rejects.toThrow();
    await freshness.reload();
    begun.end(performance.now(), 1);
    expect([freshness.isOutdated, freshness.begin(false).parts]).toEqual([true, allParts]);
    run(2);
    expect(freshness.isOutdated).toBe(false);
  });

  it('is outdated by a write of this process until the database was read after it, whatever was read before', async () => {
    const noted = createSignal();
    const found = createSignal();
    storeWrite.mockImplementationOnce(async () => {
      await noted.promise;
      return { mark: 6, previous: undefined };
    });
    read.mockImplementationOnce(async () => {
      await found.promise;
      return stored(5);
    });
    const reading = freshness.reload();
    const noting = freshness.noteWrite({ parts: ['locks'] });
    expect(freshness.isOutdated).toBe(true);
    read.mockResolvedValue(stored(5, 6));
    noted.settle();
    found.settle();
    await reading;
    expect(freshness.isOutdated).toBe(true);
    await noting;
    expect(freshness.isOutdated).toBe(true);
    // Another process has read it back.
    read.mockResolvedValue(stored(7));
    await freshness.reload();
    expect(freshness.isOutdated).toBe(false);
  });

  it('is outdated by a write of another process until a run has read it back, in whichever process', async () => {
    read.mockResolvedValue(stored(5, 6));
    await freshness.reload();
    expect([freshness.isOutdated, freshness.begin(false).parts]).toEqual([true, allParts]);
    run(7);
    expect(freshness.isOutdated).toBe(false);
    read.mockResolvedValue(stored(7, 8));
    await freshness.reload();
    expect(freshness.isOutdated).toBe(true);
    read.mockResolvedValue(stored(7));
    await freshness.reload();
    expect(freshness.isOutdated).toBe(false);
  });

  it('has the age that the database computes, though its clock differs from the one here', async () => {
    const hour = 60 * 60_000;
    for (const ahead of [-hour, hour]) {
      read.mockResolvedValue(stored(Date.now() + ahead - 7_000, undefined, ahead));
      await freshness.reload();
      expect(freshness.age).toBe(7_000);
    }
  });

  it.each([-60, -2, 120])('is as it was if the clock is set by %i minutes', (minutes) => {
    run(Date.now());
    vi.setSystemTime(Date.now() + minutes * 60_000);
    vi.advanceTimersByTime(5_000);
    expect(freshness.age).toBe(5_000);
  });
});
