/**
 * Whether all has been heard of that a viewer may have been shown. A change can be read a moment before it is announced,
 * and what is cached is from before it until then: whoever has seen the change must not get that any more.
 */

import type { ChangeFeed } from '../database/feed/changeFeed.ts';
import { waitAtMost } from '../database/waiting.ts';

/** How long, in milliseconds, announcements are waited for. */
const longestWait = 250;

/** How long, in milliseconds, nobody waits for them once they were waited for in vain, unless they come. */
const rest = 1_000;

/** Of how many viewers it is known when they were last shown something: when there are more, all were shown something now. */
const maxViewers = 100_000;

export interface ReadBarrier {
  /** Must be called when something was read for the viewer. */
  noteRead(viewerId: number): void;
  /** The number of the viewer's last read. */
  lastReadOf(viewerId: number): number;
  /** Whether everything is known to have been heard of that reads of the viewer's may have shown. */
  isCaughtUp(viewerId: number): boolean;
  /** Waits until it is, and gives false when that takes too long. */
  catchUp(viewerId: number): Promise<boolean>;
}

export function createReadBarrier({ catchUp }: Pick<ChangeFeed, 'catchUp'>): ReadBarrier {
  const last = new Map<number, number>();
  let clock = 0;
  /** The last read of each viewer of whom it is not known. */
  let floor = 0;
  let caughtUpUntil = 0;
  let lastFailure = Number.NEGATIVE_INFINITY;
  const lastReadOf = (viewerId: number) => last.get(viewerId) ?? floor;

  async function hearAll(until: number): Promise<void> {
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
    isCaughtUp: (viewerId) => !catchUp || lastReadOf(viewerId) <= caughtUpUntil,
    async catchUp(viewerId) {
      const needed = lastReadOf(viewerId);
      if (performance.now() - lastFailure < rest) return false;
      await waitAtMost(longestWait, hearAll(clock));
      const isHeard = needed <= caughtUpUntil;
      if (!isHeard) lastFailure = performance.now();
      return isHeard;
    },
  };
}
