/**
 * When snapshots see what a transaction has written. Its messages may be read from the log before: it is in the log
 * first, and may wait there for a synchronous standby.
 */

import { createSignal, pause } from '../waiting.ts';
import { isOver, type Snapshot } from './snapshot.ts';

/** The longest time, in milliseconds, between two snapshots if many transactions come: one serves all that come meanwhile. */
const longestRest = 10;
/** The times between them if none is over, of which each is twice the one before. */
const shortestRetry = 1;
const longestRetry = 50;

/**
 * Makes a function that waits until a transaction is seen: until every snapshot from then on shows what it has written, or
 * that it has failed. It takes the lower 32 bits of the transaction's id.
 * @param readSnapshot takes a new snapshot.
 * @param lost aborted when none can be taken any more: nobody is told then, and whoever waits goes on waiting.
 */
export function createVisibility(
  readSnapshot: () => Promise<Snapshot>,
  lost: AbortController,
): (transaction: number) => Promise<void> {
  const awaited = new Map<number, ReturnType<typeof createSignal>>();
  let retry = shortestRetry;
  let nextSnapshot = 0;

  /** Tells those who wait for transactions that are over. */
  async function tell(): Promise<void> {
    const snapshot = await readSnapshot();
    const over = [...awaited].filter(([transaction]) => isOver(transaction, snapshot));
    for (const [transaction, signal] of over) {
      awaited.delete(transaction);
      signal.settle();
    }
    nextSnapshot = performance.now() + (over.length > 0 ? Math.min(over.length, longestRest) : retry);
    retry = over.length > 0 ? shortestRetry : Math.min(retry * 2, longestRetry);
  }

  async function tellAll(): Promise<void> {
    while (awaited.size > 0 && !lost.signal.aborted) {
      const wait = nextSnapshot - performance.now();
      if (wait <= 0 || (await pause(wait, lost.signal))) await tell();
    }
  }

  return (transaction) => {
    const known = awaited.get(transaction);
    if (known) return known.promise;
    const isTelling = awaited.size > 0;
    const signal = createSignal();
    awaited.set(transaction, signal);
    // Not for each message: one snapshot serves those that come together.
    if (!isTelling) setImmediate(() => tellAll().catch((error: unknown) => lost.abort(error)));
    return signal.promise;
  };
}
