/**
 * How many statements the database is given at once: found out from how long they take, since only the database knows how
 * many it can do beside each other, and how many others it works for.
 */

import type { EventEmitter } from 'node:events';
import type pg from 'pg';

export interface Concurrency {
  /** How many statements may run at once. Those that belong to a request under way are never held up. */
  readonly limit: number;
  /** How many requests may begin to ask the database. Zero or less when it has enough to do. */
  free(): number;
  /** Has the listener called whenever a statement has ended. */
  onEnded(listener: () => void): void;
}

/** What is looked at of a pool of connections. */
export interface WatchedPool
  extends Pick<pg.Pool, 'totalCount' | 'idleCount' | 'waitingCount'>,
    Pick<EventEmitter, 'on'> {
  readonly options: { readonly max: number };
}

/** What it takes to judge by: so much time, in milliseconds, and so many statements. */
const judgement = { time: 100, statements: 20 };

/** How many times as long as alone statements may take beside others. */
const tolerated = 2;

/** So few statements hardly wait for each other. */
const fewest = 2;

/**
 * In milliseconds: what takes longer waits for a lock, or has a lot to count. It says nothing of how busy the database is,
 * and must not keep others from it.
 */
const slow = 250;

/**
 * Fewer at once when statements take much longer than at best, and one more when somebody had to wait and they do not
 * (the gradient of Netflix's concurrency-limits). Where even the fewest take long, it is no longer the others that make
 * them wait: then this is what statements take from now on, since otherwise a database that has become slower, or is
 * asked for more, would be left with the fewest for good.
 */
export function createConcurrency(pool: WatchedPool): Concurrency {
  const most = pool.options.max;
  const least = Math.min(fewest, most);
  /** When each statement began, by the connection that it runs on; the oldest first. */
  const running = new Map<unknown, number>();
  const listeners: (() => void)[] = [];
  let limit = most;
  let best = Number.POSITIVE_INFINITY;
  let window = { began: performance.now(), statements: 0, logarithms: 0, hasKeptWaiting: false };

  function judge(now: number): void {
    const { began, statements, logarithms, hasKeptWaiting } = window;
    if (statements < judgement.statements || now - began < judgement.time) return;
    // Of the logarithms, so that few that take long do not count for more than many that take no time.
    const usual = Math.exp(logarithms / statements);
    best = Math.min(best, usual);
    const share = (tolerated * best) / usual;
    if (share >= 1) {
      if (hasKeptWaiting) limit = Math.min(limit + 1, most);
    } else if (limit > least) limit = Math.max(Math.floor(limit * Math.max(share, 0.5)), least);
    else best = usual;
    window = { began: now, statements: 0, logarithms: 0, hasKeptWaiting: false };
  }

  pool.on('acquire', (connection: unknown) => running.set(connection, performance.now()));
  pool.on('release', (error: unknown, connection: unknown) => {
    const began = running.get(connection);
    running.delete(connection);
    const now = performance.now();
    if (began !== undefined && !error && now - began < slow) {
      window.statements++;
      // No clock is exact enough for less.
      window.logarithms += Math.log(Math.max(now - began, 0.01));
      judge(now);
    }
    for (const listener of listeners) listener();
  });

  function countSlow(): number {
    const before = performance.now() - slow;
    let count = 0;
    for (const began of running.values()) {
      if (began > before) break;
      count++;
    }
    return count;
  }

  return {
    get limit() {
      return limit;
    },
    free() {
      // What is about to connect counts as well.
      const busy = pool.totalCount - pool.idleCount + pool.waitingCount;
      const free = busy < limit ? limit - busy : limit - (busy - countSlow());
      if (free <= 0) window.hasKeptWaiting = true;
      return free;
    },
    onEnded: (listener) => listeners.push(listener),
  };
}
