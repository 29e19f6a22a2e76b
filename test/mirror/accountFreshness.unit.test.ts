/** How fresh an account is, with a mock in place of the database. */

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type AccountFreshness, createAccountFreshness } from '../../src/mirror/accountFreshness.ts';
import type { StoredFreshness } from '../../src/mirror/storedFreshness.ts';

const whole = { began: 1, isPart: false };
const part = { began: 1, isPart: true };
/** What the database stores; its clock is `ahead` of the one here by so many milliseconds. */
const stored = (refreshedAt?: number, writtenAt?: number, ahead = 0) => ({
  refreshedAt,
  age: refreshedAt === undefined ? 0 : Date.now() + ahead - refreshedAt,
  writtenAt,
  isLeased: false,
});
const read = vi.fn<() => Promise<StoredFreshness>>();
const onChanged = vi.fn();
let freshness: AccountFreshness;

beforeEach(() => {
  // Both clocks show the same time, until a test sets one.
  vi.useFakeTimers({ toFake: ['Date', 'performance'], now: 0 });
  vi.advanceTimersByTime(10_000);
  vi.clearAllMocks();
  read.mockResolvedValue(stored());
  freshness = createAccountFreshness(read, onChanged);
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

  it('is read again if it is marked as stale during the read, whose result may be from before', async () => {
    read.mockImplementationOnce(async () => {
      freshness.markStale();
      return stored(5);
    });
    await freshness.ensureLoaded();
    expect([freshness.refreshedAt, read.mock.calls.length]).toEqual([undefined, 2]);
  });

  it('is read again if it was marked as stale during a run, which says nothing of a write of another process', async () => {
    read.mockResolvedValue(stored(5));
    await freshness.ensureLoaded();
    freshness.markStale();
    freshness.set(performance.now(), { ...whole, began: 6 });
    read.mockResolvedValue(stored(6, 7));
    await freshness.ensureLoaded();
    expect(freshness.isOutdated).toBe(true);
  });

  it('announces that another process has refreshed or removed the account, once each', async () => {
    read.mockResolvedValue(stored(5));
    await freshness.reload();
    await freshness.reload();
    expect(onChanged).toHaveBeenCalledTimes(1);
    read.mockResolvedValue(stored());
    await freshness.reload();
    expect(onChanged).toHaveBeenCalledTimes(2);
  });

  it('announces each run, since another process may have brought what the run has found here', () => {
    freshness.set(5, whole);
    freshness.set(6, part);
    expect(onChanged).toHaveBeenCalledTimes(2);
  });

  it('is outdated from a write until a run that began after it; a run of some lists leaves the time of the last refresh', () => {
    const before = performance.now() - 1;
    freshness.set(before, whole);
    expect(freshness.isOutdated).toBe(false);
    freshness.noteWrite();
    expect(freshness.isOutdated).toBe(true);
    // Its lists may have been read before the write.
    freshness.set(before, whole);
    expect(freshness.isOutdated).toBe(true);
    freshness.set(performance.now(), part);
    expect([freshness.isOutdated, freshness.refreshedAt]).toEqual([false, before]);
  });

  it('has the age that the database computes, though its clock differs from the one here', async () => {
    const hour = 60 * 60_000;
    for (const ahead of [-hour, hour]) {
      read.mockResolvedValue(stored(Date.now() + ahead - 7_000, undefined, ahead));
      await freshness.reload();
      expect(freshness.age).toBe(7_000);
    }
  });

  it('has the age 0 if the refresh was a few seconds in the future, and that of a day if it was further ahead', async () => {
    read.mockResolvedValue(stored(Date.now() + 4_000));
    await freshness.reload();
    expect(freshness.age).toBe(0);
    read.mockResolvedValue(stored(Date.now() + 6_000));
    await freshness.reload();
    expect(freshness.refreshedAt).toBeDefined();
    expect(freshness.age).toBe(24 * 60 * 60_000);
  });

  it.each([-60, -2, 120])('is as it was if the clock is set by %i minutes', (minutes) => {
    freshness.set(performance.now(), whole);
    vi.setSystemTime(Date.now() + minutes * 60_000);
    vi.advanceTimersByTime(5_000);
    expect(freshness.age).toBe(5_000);
    freshness.noteWrite();
    expect(freshness.isOutdated).toBe(true);
    vi.advanceTimersByTime(1);
    freshness.set(performance.now(), part);
    expect(freshness.isOutdated).toBe(false);
  });

  it('is outdated while the database has a write of another process that no complete run has read', async () => {
    read.mockResolvedValue(stored(5, 6));
    await freshness.reload();
    expect(freshness.isOutdated).toBe(true);
    // A run of some lists has not read what another process has written to others.
    freshness.set(performance.now(), { ...part, began: 7 });
    expect(freshness.isOutdated).toBe(true);
    freshness.set(performance.now(), { ...whole, began: 7 });
    expect(freshness.isOutdated).toBe(false);
    read.mockResolvedValue(stored(7, 8));
    await freshness.reload();
    expect(freshness.isOutdated).toBe(true);
    read.mockResolvedValue(stored(7));
    await freshness.reload();
    expect(freshness.isOutdated).toBe(false);
  });

  it('is not outdated by a write of this process that a run has read, though the database still has it', async () => {
    freshness.noteWrite();
    freshness.noteStoredWrite(6);
    read.mockResolvedValue(stored(5, 6));
    await freshness.reload();
    expect(freshness.isOutdated).toBe(true);
    freshness.set(performance.now(), { ...part, began: 7 });
    expect(freshness.isOutdated).toBe(false);
  });
});
