/** Limits the requests of an account to those that the upstream allows in a minute, and divides them by priority. */

import { setTimeout as sleep } from 'node:timers/promises';

/** The purpose of a request: a waiting client, the lists, or details. */
export type Priority = 'demand' | 'refresh' | 'details';

/** The share of the budget up to which requests of a priority are sent. The rest stays for more urgent requests. */
const shares: Readonly<Record<Priority, number>> = { demand: 1, refresh: 0.95, details: 0.8 };

/** The share that is reserved for refreshes, even if requests that cannot wait use the whole budget. */
const ownOfRefresh = 0.15;

/** A little more than a minute, in milliseconds, since requests take different times to arrive. */
const window = 60_500;

/** The longest pause, in milliseconds, that an upstream can ask for: an hour. */
export const longestPause = 60 * 60_000;

export type Budget = ReturnType<typeof createBudget>;

/**
 * @param rate requests in any minute; 0 for no limit.
 * @param onSent called with every request.
 * @param wait pauses for so many milliseconds.
 */
export function createBudget(
  rate: number,
  onSent: () => unknown = () => {},
  wait: (milliseconds: number, signal?: AbortSignal) => Promise<unknown> = waitFor,
) {
  const sent = createLastMinute();
  const refreshed = createLastMinute();
  let pausedUntil = Number.NEGATIVE_INFINITY;
  const remainingPause = () => Math.max(pausedUntil - performance.now(), 0);

  /** Whether refreshes have not used their reserved share yet. */
  const isDue = (priority: Priority) =>
    priority === 'refresh' && refreshed.times().length < Math.ceil(rate * ownOfRefresh);

  /** Up to how many requests in a minute, of all priorities, a request of this priority is sent. */
  const mostFor = (priority: Priority) => Math.max(Math.floor(rate * shares[priority]), 1);

  /** After how many milliseconds this many requests may be sent; 0 for now. */
  function delayFor(count: number, priority: Priority = 'demand'): number {
    const times = sent.times();
    const tooMany = rate === 0 ? 0 : times.length + count - mostFor(priority);
    if (tooMany <= 0 || (count === 1 && isDue(priority))) return remainingPause();
    // So many of the oldest requests have to leave the window. If there are not so many, wait for a whole window.
    const last = times[tooMany - 1];
    return Math.max(remainingPause(), last === undefined ? window : last + window - performance.now());
  }

  /** Counts a request that is sent whether or not the budget allows it. */
  function note(): void {
    onSent();
    if (rate > 0) sent.add();
  }

  return {
    delayFor,
    note,
    /** How many requests that clients wait for may be sent now. */
    available(): number {
      if (remainingPause() > 0) return 0;
      return rate === 0 ? Number.POSITIVE_INFINITY : Math.max(rate - sent.times().length, 0);
    },
    /** Waits until a request may be sent, and counts it. */
    async take(priority: Priority, signal?: AbortSignal): Promise<void> {
      for (let delay = delayFor(1, priority); delay > 0; delay = delayFor(1, priority))
        await wait(delay, signal);
      note();
      if (rate > 0 && priority === 'refresh') refreshed.add();
    },
    /** Sends no requests for this many milliseconds, an hour at most. */
    pauseFor(milliseconds: number): void {
      pausedUntil = Math.max(pausedUntil, performance.now() + Math.min(milliseconds, longestPause));
    },
  };
}

const waitFor = (milliseconds: number, signal?: AbortSignal) =>
  sleep(milliseconds, undefined, { ...(signal && { signal }) });

/** The times of events in the last minute, by `performance.now()`, oldest first. */
function createLastMinute() {
  let times: number[] = [];
  return {
    add: () => void times.push(performance.now()),
    times(): readonly number[] {
      const first = times.findIndex((time) => time > performance.now() - window);
      times = first === -1 ? [] : times.slice(first);
      return times;
    },
  };
}
