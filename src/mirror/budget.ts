/** How many requests an upstream allows for an account in a minute, and which of ours go first. */

import { setTimeout as sleep } from 'node:timers/promises';

/** What a request is for: somebody waits for it, the lists are to be read again, or details are still to be read. */
export type Priority = 'demand' | 'refresh' | 'details';

/** How much of the budget each may use. What the less urgent leave is there at once for what is more urgent. */
const shares: Readonly<Record<Priority, number>> = { demand: 1, refresh: 0.95, details: 0.8 };

/** A minute, in milliseconds, and a little more: requests do not all take equally long to get there. */
const window = 60_500;

export interface Budget {
  /** Counts a request that is sent whatever the budget says. */
  note(): void;
  /** How many requests on demand may be sent now. */
  available(): number;
  /** How long, in milliseconds, it takes until so many requests may be sent; 0 for now. */
  delayFor(count: number, priority?: Priority): number;
  /** Waits until a request may be sent, and counts it. */
  take(priority: Priority, signal?: AbortSignal): Promise<void>;
  /** Has nothing sent before then, in milliseconds since the epoch. */
  pauseUntil(time: number): void;
}

/**
 * @param rate requests in any minute; 0 for as many as one likes.
 * @param onSent told of every request.
 * @param wait for so many milliseconds.
 */
export function createBudget(
  rate: number,
  onSent: () => unknown = () => {},
  wait: (milliseconds: number, signal?: AbortSignal) => Promise<unknown> = (milliseconds, signal) =>
    sleep(milliseconds, undefined, { ...(signal && { signal }) }),
): Budget {
  /** When the requests of the last minute were sent, the oldest first. */
  let sent: number[] = [];
  let pausedUntil = 0;
  const note = () => {
    onSent();
    if (rate > 0) sent.push(Date.now());
  };

  /** How many requests were sent in the last minute. */
  function spent(now: number): number {
    const since = sent.findIndex((time) => time > now - window);
    sent = since === -1 ? [] : sent.slice(since);
    return sent.length;
  }

  function delayFor(count: number, priority: Priority = 'demand'): number {
    const now = Date.now();
    const pause = Math.max(pausedUntil - now, 0);
    if (rate === 0) return pause;
    const most = Math.max(Math.floor(rate * shares[priority]), 1);
    const tooMany = spent(now) + count - most;
    if (tooMany <= 0) return pause;
    // As many of the oldest have to be over; more than there are take a minute of their own.
    const last = sent[tooMany - 1];
    return Math.max(pause, last === undefined ? window : last + window - now);
  }

  return {
    delayFor,
    available() {
      const now = Date.now();
      if (pausedUntil > now) return 0;
      return rate === 0 ? Number.POSITIVE_INFINITY : Math.max(rate - spent(now), 0);
    },
    note,
    async take(priority, signal) {
      for (let delay = delayFor(1, priority); delay > 0; delay = delayFor(1, priority))
        await wait(delay, signal);
      note();
    },
    pauseUntil(time) {
      pausedUntil = Math.max(pausedUntil, time);
    },
  };
}
