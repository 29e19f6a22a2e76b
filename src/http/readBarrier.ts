/**
 * Keeps cached responses from contradicting what a viewer has read. A change can be read from the database a moment before
 * it is announced. A viewer who has seen it must not get a response that was cached before it.
 */

import type { ChangeFeed } from '../database/feed/changeFeed.ts';
import { resultWithin } from '../database/waiting.ts';

/** How long, in milliseconds, a request waits for announcements. */
const longestWait = 250;

/** After a wait that timed out, no request waits for this many milliseconds, unless an announcement arrives. */
const pauseAfterTimeout = 1_000;

/** The last read is remembered of at most this many viewers. When the map is full, it is cleared, and every viewer counts as having just read. */
const maxViewers = 100_000;

export interface ReadBarrier {
  /** Must be called after each read for the viewer. */
  noteRead(viewerId: number): void;
  /** The number of the viewer's last read: reads are numbered in their order. */
  lastReadOf(viewerId: number): number;
  /** Whether every change that the viewer's reads may have shown has been announced to this process. */
  isCaughtUp(viewerId: number): boolean;
  /** Waits until that is so. Returns false if it takes too long. */
  catchUp(viewerId: number): Promise<boolean>;
}

export function createReadBarrier({ catchUp }: Pick<ChangeFeed, 'catchUp'>): ReadBarrier {
  const last = new Map<number, number>();
  let clock = 0;
  /** The last read of every viewer who has no entry in the map. */
  let floor = 0;
  let caughtUpUntil = 0;
  let lastFailure = Number.NEGATIVE_INFINITY;
  const lastReadOf = (viewerId: number) => last.get(viewerId) ?? floor;

  async function awaitAnnouncements(until: number): Promise<void> {
    if (!(await catchUp?.())) return;
    caughtUpUntil = Math.max(caughtUpUntil, until);
    lastFailure = Number.NEGATIVE_INFINITY;
  }

  return {
    noteRead(viewerId) {
      if (!catchUp) return;
      clock++;
      if (last.size >= maxViewers) {
        last.clear();
        floor = clock;
      }
      last.set(viewerId, clock);
    },
    lastReadOf,
    isCaughtUp: (viewerId) => lastReadOf(viewerId) <= caughtUpUntil,
    async catchUp(viewerId) {
      const needed = lastReadOf(viewerId);
      if (performance.now() - lastFailure < pauseAfterTimeout) return false;
      await resultWithin(longestWait, awaitAnnouncements(clock));
      const isCaughtUp = needed <= caughtUpUntil;
      if (!isCaughtUp) lastFailure = performance.now();
      return isCaughtUp;
    },
  };
}
