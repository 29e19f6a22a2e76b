/** How fresh an account is, over a database that is a variable. */

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type AccountFreshness, createAccountFreshness } from '../../src/mirror/accountFreshness.ts';
import type { StoredFreshness } from '../../src/mirror/storedFreshness.ts';

const whole = { began: 1, hasChanges: false, isPart: false };
const part = { began: 1, hasChanges: false, isPart: true };
/** What the database says, whose clock is `ahead` of the one here, in milliseconds. */
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
  vi.useFakeTimers({ toFake: ['Date'] });
  vi.clearAllMocks();
  read.mockResolvedValue(stored());
  freshness = createAccountFreshness(read, onChanged);
});
afterEach(() => {
  vi.useRealTimers();
});

describe('the freshness of an account', () => {
  it('is what the database says, which is asked once for all who want to know, and again only where in doubt', async () => {
    read.mockResolvedValue(stored(5));
    await Promise.all([freshness.ensureLoaded(), freshness.ensureLoaded()]);
    await freshness.ensureLoaded();
    expect([freshness.refreshedAt, read.mock.calls.length]).toEqual([5, 1]);
    read.mockResolvedValue(stored());
    freshness.markStale();
    await freshness.ensureLoaded();
    expect([freshness.refreshedAt, read.mock.calls.length]).toEqual([undefined, 2]);
  });

  it('is asked again where the doubt comes while the database is asked: what it says may be from before', async () => {
    read.mockImplementationOnce(async () => {
      freshness.markStale();
      return stored(5);
    });
    await freshness.ensureLoaded();
    expect([freshness.refreshedAt, read.mock.calls.length]).toEqual([undefined, 2]);
  });

  it('tells of what another process has brought or taken, and of nothing twice', async () => {
    read.mockResolvedValue(stored(5));
    expect([(await freshness.reload()).hasChanged, (await freshness.reload()).hasChanged]).toEqual([
      true,
      false,
    ]);
    expect(onChanged).toHaveBeenCalledTimes(1);
    read.mockResolvedValue(stored());
    expect((await freshness.reload()).hasChanged).toBe(true);
    expect(onChanged).toHaveBeenCalledTimes(2);
  });

  it('tells of the first run and of those that have changed something', () => {
    freshness.set(5, whole);
    freshness.set(6, whole);
    expect(onChanged).toHaveBeenCalledTimes(1);
    freshness.set(7, { ...part, hasChanges: true });
    expect(onChanged).toHaveBeenCalledTimes(2);
  });

  it('is outdated from a write until a run that began after it, of which one of some lists makes nothing else fresher', () => {
    const before = Date.now() - 1;
    freshness.set(before, whole);
    expect(freshness.isOutdated).toBe(false);
    freshness.noteWrite();
    expect(freshness.isOutdated).toBe(true);
    // Its lists may have been read before the write.
    freshness.set(before, whole);
    expect(freshness.isOutdated).toBe(true);
    freshness.set(Date.now(), part);
    expect([freshness.isOutdated, freshness.refreshedAt]).toEqual([false, before]);
  });

  it('is reckoned from how long ago the database says that it was, whatever its clock says beside that', async () => {
    const hour = 60 * 60_000;
    for (const ahead of [-hour, hour]) {
      read.mockResolvedValue(stored(Date.now() + ahead - 7_000, undefined, ahead));
      await freshness.reload();
      expect(freshness.age).toBe(7_000);
    }
  });

  it('is none where a clock that was ahead of the database’s noted it, but for a little', async () => {
    read.mockResolvedValue(stored(Date.now() + 4_000));
    await freshness.reload();
    expect(freshness.age).toBe(0);
    read.mockResolvedValue(stored(Date.now() + 6_000));
    await freshness.reload();
    expect(freshness.refreshedAt).toBeDefined();
    expect(freshness.age).toBeGreaterThan(1e12);
  });

  it('is outdated while the database has a write of another process that no run has read', async () => {
    const states = () => [freshness.isOutdated, freshness.isBehind];
    read.mockResolvedValue(stored(5, 6));
    await freshness.reload();
    expect(states()).toEqual([true, true]);
    // A run of some lists has not read what another process has written to others.
    freshness.set(Date.now(), { ...part, began: 7 });
    expect(states()).toEqual([true, true]);
    freshness.set(Date.now(), { ...whole, began: 7 });
    expect(states()).toEqual([false, false]);
    read.mockResolvedValue(stored(7, 8));
    await freshness.reload();
    expect(states()).toEqual([true, true]);
    read.mockResolvedValue(stored(7));
    await freshness.reload();
    expect(states()).toEqual([false, false]);
  });

  it('is not outdated by a write of its own that it has read, though the database still has it', async () => {
    freshness.noteWrite();
    freshness.noteStoredWrite(6);
    read.mockResolvedValue(stored(5, 6));
    await freshness.reload();
    expect(freshness.isOutdated).toBe(true);
    freshness.set(Date.now(), { ...part, began: 7 });
    expect(freshness.isOutdated).toBe(false);
  });
});
