/** How fresh an account is, over a database that is a variable. */

import { beforeEach, describe, expect, it, vi } from 'vitest';
import { type AccountFreshness, createAccountFreshness } from '../../src/mirror/accountFreshness.ts';

const whole = { hasChanges: false, isPart: false };
const part = { hasChanges: false, isPart: true };
const read = vi.fn<() => Promise<number | undefined>>();
const onChanged = vi.fn();
let standing: AccountFreshness;

beforeEach(() => {
  vi.clearAllMocks();
  read.mockResolvedValue(undefined);
  standing = createAccountFreshness(read, onChanged);
});

describe('the standing of an account', () => {
  it('is what the database says, which is asked once for all who want to know, and again only where in doubt', async () => {
    read.mockResolvedValue(5);
    await Promise.all([standing.ensureLoaded(), standing.ensureLoaded()]);
    await standing.ensureLoaded();
    expect([standing.refreshedAt, read.mock.calls.length]).toEqual([5, 1]);
    read.mockResolvedValue(undefined);
    standing.markStale();
    await standing.ensureLoaded();
    expect([standing.refreshedAt, read.mock.calls.length]).toEqual([undefined, 2]);
  });

  it('is asked again where the doubt comes while the database is asked: what it says may be from before', async () => {
    read.mockImplementationOnce(async () => {
      standing.markStale();
      return 5;
    });
    await standing.ensureLoaded();
    expect([standing.refreshedAt, read.mock.calls.length]).toEqual([undefined, 2]);
  });

  it('tells of what another process has brought or taken, and of nothing twice', async () => {
    read.mockResolvedValue(5);
    expect([await standing.reload(), await standing.reload()]).toEqual([true, false]);
    expect(onChanged).toHaveBeenCalledTimes(1);
    read.mockResolvedValue(undefined);
    expect(await standing.reload()).toBe(true);
    expect(onChanged).toHaveBeenCalledTimes(2);
  });

  it('tells of the first run and of those that have changed something', () => {
    standing.set(5, whole);
    standing.set(6, whole);
    expect(onChanged).toHaveBeenCalledTimes(1);
    standing.set(7, { ...part, hasChanges: true });
    expect(onChanged).toHaveBeenCalledTimes(2);
  });

  it('is outdated from a write until a run that began after it, of which one of some lists makes nothing else fresher', () => {
    const before = Date.now() - 1;
    standing.set(before, whole);
    expect(standing.isOutdated).toBe(false);
    standing.noteWrite();
    expect(standing.isOutdated).toBe(true);
    // Its lists may have been read before the write.
    standing.set(before, whole);
    expect(standing.isOutdated).toBe(true);
    standing.set(Date.now(), part);
    expect([standing.isOutdated, standing.refreshedAt]).toEqual([false, before]);
  });
});
