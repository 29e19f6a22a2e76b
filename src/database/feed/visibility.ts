/**
 * When snapshots see what a transaction has written. Its messages may be read from the log before: it is in the log
 * first, and may wait there for a synchronous standby.
 */

import { createSignal, pause } from '../waiting.ts';

/** Gives those of the transactions that every snapshot from now on sees, or sees to have failed. */
export type FindVisible = (transactions: readonly string[]) => Promise<readonly string[]>;

/** The waits, in milliseconds, before it is asked again. */
const shortestDelay = 1;
const longestDelay = 50;

/**
 * Makes a function that waits until a transaction is seen. One question at a time is asked for all that are waited for.
 * @param lost aborted when that cannot be asked any more: nobody is told then, and whoever waits goes on waiting.
 */
export function createVisibility(
  find: FindVisible,
  lost: AbortController,
): (transaction: string) => Promise<void> {
  const awaited = new Map<string, ReturnType<typeof createSignal>>();

  async function ask(): Promise<void> {
    let delay = shortestDelay;
    while (awaited.size > 0 && !lost.signal.aborted) {
      const visible = await find([...awaited.keys()]);
      for (const transaction of visible) {
        awaited.get(transaction)?.settle();
        awaited.delete(transaction);
      }
      if (visible.length > 0) delay = shortestDelay;
      else if (await pause(delay, lost.signal)) delay = Math.min(delay * 2, longestDelay);
    }
  }

  return (transaction) => {
    const known = awaited.get(transaction);
    if (known) return known.promise;
    const isAsking = awaited.size > 0;
    const signal = createSignal();
    awaited.set(transaction, signal);
    // Not for each message: those that come together are asked for together.
    if (!isAsking) setImmediate(() => ask().catch(() => lost.abort()));
    return signal.promise;
  };
}
