/**
 * How many statements the database is given at once: found out by trying, since only the database knows how many it can do
 * beside each other, and how many others it works for.
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
const judgement = { time: 200, statements: 20 };

/** So many times as many are tried, or as few. */
const probe = 1.25;

/** How many times as high the limit becomes at once, or as low, at most. */
const step = 1.33;

/** At the highest limit, where more at once has paid off, fewer are tried after so many times the usual time alone. */
const longWindow = 4;

/** The limit is never lower: with so few at once a database does hardly less. */
const fewest = 2;

/**
 * In milliseconds: where all connections together are given no more work than this, nothing is held up (Little's law).
 * Hardly anything is gained by waiting here rather than there, and this process takes less for each, the more end at once.
 */
const soon = 10;

/** In milliseconds: when nothing ends for so long, what runs does not wait for the database, but for a lock. */
const stuck = 1_000;

export function createConcurrency(pool: WatchedPool): Concurrency {
  const limit = createLimit(pool.options.max);
  const listeners: (() => void)[] = [];
  // What is about to connect counts as well.
  const countBusy = () => pool.totalCount - pool.idleCount + pool.waitingCount;

  pool.on('release', () => {
    // The connection is not idle yet.
    limit.statementEnded(countBusy() >= limit.current);
    for (const listener of listeners) listener();
  });

  return {
    get limit() {
      return limit.current;
    },
    free() {
      if (countBusy() >= limit.current) limit.noteWaiting();
      return limit.current - countBusy();
    },
    onEnded: (listener) => listeners.push(listener),
  };
}

/**
 * Tries rather few at once and rather many in turn, while there are enough that want to, and goes to where more statements
 * end in the same time (extremum seeking). Those that share a processor only wait for each other, and fewer of them end as
 * many in the same time. Those that wait for something else, such as a disk or the network, do not. How long statements
 * take does not matter: that has more to do with what they are than with how many they are.
 */
function createLimit(most: number) {
  const least = Math.min(fewest, most);
  /** Between the two that are tried; not always whole. */
  let middle = most;
  let current = most;
  let isHigh = true;
  let isWorthIt = false;
  let before: Trial | undefined;
  let window = openWindow(current);

  function judge(now: number): void {
    const rate = window.statements / (now - window.began);
    // The limit kept hardly anybody waiting, or need not keep anybody (Little's law).
    if (2 * window.full < window.statements || most <= soon * rate) {
      raise();
      return;
    }
    const last = before;
    before = { limit: current, rate };
    change(last ? gain(last, before) : 1);
  }

  /** Without knowing better. */
  function raise(): void {
    before = undefined;
    isHigh = false;
    change(step);
  }

  /** Changes the limit, and tries more where it was fewer, and the other way round. */
  function change(factor: number): void {
    isWorthIt = factor > 1;
    middle = between(least, middle * between(1 / step, factor, step), most);
    isHigh = !isHigh;
    const few = between(least, Math.round(middle / probe), Math.max(most - 1, least));
    current = isHigh ? between(few + 1, Math.round(middle * probe), most) : few;
    window = openWindow(current);
  }

  return {
    get current() {
      return current;
    },
    /** Somebody has to wait. */
    noteWaiting(): void {
      if (performance.now() - window.lastEnded > stuck) raise();
    },
    /** A statement has ended, before which the limit was reached or not. */
    statementEnded(wasFull: boolean): void {
      const now = performance.now();
      count(window, wasFull, now);
      const times = isHigh && isWorthIt && middle === most ? longWindow : 1;
      if (isEnough(window, now, times)) judge(now);
    },
  };
}

/** How many statements ended in a millisecond while so many could run at once. */
interface Trial {
  readonly limit: number;
  readonly rate: number;
}

/** More than 1 if more at once are worth it: if they do more by more than half of what they are more. */
function gain(one: Trial, other: Trial): number {
  const [few, many] = one.limit < other.limit ? [one, other] : [other, one];
  return many.rate / few.rate / Math.sqrt(many.limit / few.limit);
}

/** What is known since the limit was changed. */
function openWindow(limit: number) {
  const now = performance.now();
  // Those that began before the change are others.
  return { began: now, lastEnded: now, statements: 0, full: 0, others: limit };
}

function count(window: Window, wasFull: boolean, now: number): void {
  window.lastEnded = now;
  if (window.others > 0) {
    window.others--;
    window.began = now;
  } else {
    window.statements++;
    if (wasFull) window.full++;
  }
}

const isEnough = ({ statements, began }: Window, now: number, times: number) =>
  statements >= times * judgement.statements && now - began >= times * judgement.time;

type Window = ReturnType<typeof openWindow>;

const between = (least: number, value: number, most: number) => Math.min(Math.max(least, value), most);
