/** How fresh an account is, with a mock in place of the database. */

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type AccountFreshness, createAccountFreshness } from '../../src/mirror/accountFreshness.ts';
import type { StoredFreshness } from '../../src/mirror/storedFreshness.ts';

/** What the database stores; its clock is `ahead` of the one here by so many milliseconds. */
const stored = (refreshedAt?: number, mark?: number, ahead = 0): StoredFreshness => ({
  refreshedAt,
  age: refreshedAt === undefined ? 0 : Date.now() + ahead - refreshedAt,
  mark,
  isLeased: false,
});
const read = vi.fn<() => Promise<StoredFreshness>>();
const onChanged = vi.fn();
let freshness: AccountFreshness;

/** Has a run read lists that begins now. */
function run(began: number, isPart = false): void {
  const { writes, mark } = freshness;
  freshness.set({ askedAt: performance.now(), began, isPart, writes, mark });
}
const write = (mark?: number, previous?: number) => freshness.noteWrite(async () => ({ mark, previous }));

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

  it('announces each run, and once that another process has refreshed or removed the account', async () => {
    run(5);
    run(6, true);
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
    const begun = {
      askedAt: performance.now(),
      began: 2,
      isPart: false,
      writes: freshness.writes,
      mark: undefined,
    };
    await write(6);
    expect(freshness.isOutdated).toBe(true);
    // Its lists may have been read before the write.
    freshness.set(begun);
    expect(freshness.isOutdated).toBe(true);
    vi.advanceTimersByTime(5);
    run(3, true);
    expect([freshness.isOutdated, freshness.refreshedAt]).toEqual([false, refreshedAt]);
  });

  it('is outdated by a write even if the database does not take it', async () => {
    run(1);
    const noting = freshness.noteWrite(() => Promise.reject(new Error('the database is away')));
    await expect(noting).rejects.toThrow();
    await freshness.reload();
    expect(freshness.isOutdated).toBe(true);
    run(2);
    expect(freshness.isOutdated).toBe(false);
  });

  it('is not outdated by a write of this process that another process has read back', async () => {
    let note = () => {};
    const noting = freshness.noteWrite(
      () =>
        new Promise((resolve) => {
          note = () => resolve({ mark: 6, previous: undefined });
        }),
    );
    // The write is not in the database yet.
    await freshness.reload();
    expect(freshness.isOutdated).toBe(true);
    note();
    await noting;
    read.mockResolvedValue(stored(5, 6));
    await freshness.reload();
    expect(freshness.isOutdated).toBe(true);
    read.mockResolvedValue(stored(7));
    await freshness.reload();
    expect(freshness.isOutdated).toBe(false);
  });

  it('is outdated by a write of another process until a run has read it back, in whichever process', async () => {
    read.mockResolvedValue(stored(5, 6));
    await freshness.reload();
    expect([freshness.isOutdated, freshness.isWrittenElsewhere]).toEqual([true, true]);
    run(7);
    expect(freshness.isOutdated).toBe(false);
    read.mockResolvedValue(stored(7, 8));
    await freshness.reload();
    expect(freshness.isOutdated).toBe(true);
    read.mockResolvedValue(stored(7));
    await freshness.reload();
    expect(freshness.isOutdated).toBe(false);
  });

  it('tells whether another process has forwarded a write before that was not read back', async () => {
    expect(await write(6)).toBe(false);
    expect(await write(7, 6)).toBe(false);
    expect(await write(9, 8)).toBe(true);
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
    run(Date.now());
    vi.setSystemTime(Date.now() + minutes * 60_000);
    vi.advanceTimersByTime(5_000);
    expect(freshness.age).toBe(5_000);
  });
});
