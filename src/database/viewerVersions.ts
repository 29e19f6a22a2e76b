/**
 * The version of each viewer's data: a number that every announced change, and every write through this process, raises. A result
 * from a viewer's data may be used again while three things are true: the version is the same, announcements are proved to arrive,
 * and every change that the viewer may have seen has been announced. Without versions nothing can be cached.
 */

import type { ChangeFeed } from './feed/changeFeed.ts';
import { resultWithin } from './waiting.ts';

/** How long, in milliseconds, a request waits for announcements. */
export const longestAnnouncementWait = 250;

/** After a wait that timed out, no request waits for this many milliseconds, unless an announcement arrives. */
const pauseAfterTimeout = 1_000;

/** How many viewers are remembered. When there are more, all are forgotten. */
export const maxViewers = 100_000;

/** Numbers of viewers that only grow. */
function createNumbers() {
  const numbers = new Map<number, number>();
  let latest = 0;
  /** The number of every viewer who has none of their own. */
  let floor = 0;

  function raiseAll(): void {
    numbers.clear();
    floor = ++latest;
  }

  return {
    latest: () => latest,
    of: (viewerId: number) => numbers.get(viewerId) ?? floor,
    raise(viewerId: number): void {
      if (numbers.size >= maxViewers) raiseAll();
      numbers.set(viewerId, ++latest);
    },
    raiseAll,
  };
}

export function createViewerVersions(feed: ChangeFeed) {
  const { catchUp } = feed;
  const versions = createNumbers();
  feed.subscribe((change) => (change.kind === 'user' ? versions.raise(change.userId) : versions.raiseAll()));
  // Cached responses must not contradict what a viewer has read. A change can be read from the database a moment before it is
  // announced. A viewer who has seen it must not get a response that was cached before it.
  /** The last read of each viewer. Reads are numbered in their order. */
  const reads = createNumbers();
  let caughtUpUntil = 0;
  let lastFailure = Number.NEGATIVE_INFINITY;

  async function awaitAnnouncements(until: number): Promise<void> {
    if (!(await catchUp?.())) return;
    caughtUpUntil = Math.max(caughtUpUntil, until);
    lastFailure = Number.NEGATIVE_INFINITY;
  }

  return {
    /** The version; undefined while no result from the viewer's data may be cached. */
    versionOf: (viewerId: number) => (feed.listening ? versions.of(viewerId) : undefined),
    /** Must be called after a write through this process, before it is acknowledged. */
    invalidate: versions.raise,
    noteRead(viewerId: number): void {
      if (catchUp) reads.raise(viewerId);
    },
    lastReadOf: reads.of,
    /** Whether every change that the viewer's reads may have shown has been announced to this process. */
    isCaughtUp: (viewerId: number) => reads.of(viewerId) <= caughtUpUntil,
    /** Waits until that is so. Returns false if it takes too long. */
    async catchUp(viewerId: number): Promise<boolean> {
      const needed = reads.of(viewerId);
      if (performance.now() - lastFailure < pauseAfterTimeout) return false;
      await resultWithin(longestAnnouncementWait, awaitAnnouncements(reads.latest()));
      const isCaughtUp = needed <= caughtUpUntil;
      if (!isCaughtUp) lastFailure = performance.now();
      return isCaughtUp;
    },
  };
}
