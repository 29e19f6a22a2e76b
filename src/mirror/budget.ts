/** How many requests an upstream allows for an account in a minute, and which of ours go first. */

import { setTimeout as sleep } from 'node:timers/promises';

/** What a request is for: somebody waits for it, the lists are to be read again or for the first time, or details are. */
export type Priority = 'demand' | 'refresh' | 'arrival' | 'details';

/** How much of the budget each may use. What the less urgent leave is there at once for what is more urgent. */
const shares: Readonly<Record<Priority, number>> = { demand: 1, refresh: 0.95, details: 0.8, arrival: 0.75 };

/** How much of it refreshes have also where requests that nobody can hold back take all of it. */
const ownOfRefresh = 0.15;

/** A minute, in milliseconds, and a little more: requests do not all take equally long to get there. */
const window = 60_500;

/** How long, in milliseconds, nothing is sent at the most: an hour, whatever an upstream says. */
export const longestWait = 60 * 60_000;

export interface Budget {
  /** Counts a request that is sent whatever the budget says: there has to be room for more of its like. */
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
  wait: (milliseconds: number, signal?: AbortSignal) => Promise<unknown> = waitFor,
): Budget {
  const sent = createLastMinute();
  /** Those of them that nobody here can hold back. */
  const noted = createLastMinute();
  const refreshed = createLastMinute();
  let pausedUntil = 0;
  const remainingPause = () => Math.max(pausedUntil - Date.now(), 0);

  /** Whether refreshes have not had what is theirs, however much else was sent. */
  const isDue = (priority: Priority) =>
    priority === 'refresh' && refreshed.times().length < Math.ceil(rate * ownOfRefresh);

  /** How many requests a minute there may be in all, for one of the priority to be sent. */
  function mostFor(priority: Priority): number {
    if (priority === 'demand') return rate;
    // Whoever asks goes on asking, a little more now and then.
    const left = rate - noted.times().length * 1.5;
    return Math.max(Math.floor(Math.min(rate * shares[priority], left)), 1);
  }

  function delayFor(count: number, priority: Priority = 'demand'): number {
    const times = sent.times();
    const tooMany = rate === 0 ? 0 : times.length + count - mostFor(priority);
    if (tooMany <= 0 || (count === 1 && isDue(priority))) return remainingPause();
    // As many of the oldest have to be over; more than there are take a minute of their own.
    const last = times[tooMany - 1];
    return Math.max(remainingPause(), last === undefined ? window : last + window - Date.now());
  }

  function count(): void {
    onSent();
    if (rate > 0) sent.add();
  }

  return {
    delayFor,
    note() {
      count();
      if (rate > 0) noted.add();
    },
    available() {
      if (remainingPause() > 0) return 0;
      return rate === 0 ? Number.POSITIVE_INFINITY : Math.max(rate - sent.times().length, 0);
    },
    async take(priority, signal) {
      for (let delay = delayFor(1, priority); delay > 0; delay = delayFor(1, priority))
        await wait(delay, signal);
      count();
      if (rate > 0 && priority === 'refresh') refreshed.add();
    },
    pauseUntil(time) {
      pausedUntil = Math.max(pausedUntil, Math.min(time, Date.now() + longestWait));
    },
  };
}

const waitFor = (milliseconds: number, signal?: AbortSignal) =>
  sleep(milliseconds, undefined, { ...(signal && { signal }) });

/** When something happened in the last minute, in milliseconds since the epoch, the oldest first. */
function createLastMinute() {
  let times: number[] = [];
  return {
    add: () => void times.push(Date.now()),
    times(): readonly number[] {
      const first = times.findIndex((time) => time > Date.now() - window);
      times = first === -1 ? [] : times.slice(first);
      return times;
    },
  };
}
