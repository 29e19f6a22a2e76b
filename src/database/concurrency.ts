/**
 * Limits how many statements run at once. The limit is found by experiment, since only the database knows how many it can
 * run side by side, and for how many other clients it works.
 */

import type { EventEmitter } from 'node:events';
import type pg from 'pg';

export interface Concurrency {
  /** How many statements may run at once. Statements of a request that has begun are never held back. */
  readonly limit: number;
  /** How many more requests may begin to use the database. Zero or less while it is busy. */
  free(): number;
  /** Has the listener called whenever a statement has ended. */
  onEnded(listener: () => void): void;
}

/** The part of a connection pool that is observed. */
export interface WatchedPool
  extends Pick<pg.Pool, 'totalCount' | 'idleCount' | 'waitingCount'>,
    Pick<EventEmitter, 'on'> {
  readonly options: { readonly max: number };
}

/** A limit is judged after this many milliseconds and this many statements. */
const judgement = { time: 200, statements: 20 };

/** The factor between the middle and the higher or lower limit that is tried. */
const probe = 1.25;

/** The largest factor by which the limit changes at once. */
const step = 1.33;

/** At the highest limit, if raising it has paid off, a lower one is tried only after this many times the usual time. */
const longWindow = 4;

/** The limit is never lower. */
const fewest = 2;

/**
 * In milliseconds. When even the full pool would finish a statement within this time (connections ÷ throughput, Little's
 * law), the limit is raised without measuring: holding statements back gains nothing.
 */
const soon = 10;

/** In milliseconds. When no statement ends for this long, the running ones wait for a lock, not for a busy database. */
const stuck = 1_000;

export function createConcurrency(pool: WatchedPool): Concurrency {
  const limit = createLimit(pool.options.max);
  const listeners: (() => void)[] = [];
  // Clients that wait for a connection count as well.
  const countBusy = () => pool.totalCount - pool.idleCount + pool.waitingCount;

  /** Since when no statement runs. */
  let idleSince = Number.POSITIVE_INFINITY;

  pool.on('release', () => {
    // The connection is not idle yet.
    const busy = countBusy();
    const now = performance.now();
    // A pause says nothing about throughput.
    if (now - idleSince > judgement.time) limit.restart();
    idleSince = busy === 1 ? now : Number.POSITIVE_INFINITY;
    limit.statementEnded(busy >= limit.current);
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
 * Extremum seeking: while the limit holds statements back, it alternates between a lower and a higher value, and moves
 * towards the one with more throughput. Statements that compete for a processor finish no faster when more of them run;
 * those that wait for a disk or the network do. Latency is not used: it depends on the statements more than on their number.
 */
function createLimit(most: number) {
  const least = Math.min(fewest, most);
  /** Between the two limits that are tried. Not always a whole number. */
  let middle = most;
  let current = most;
  let isHigh = true;
  let isWorthIt = false;
  let before: Trial | undefined;
  let window = createWindow(current);

  function judge(now: number): void {
    const rate = window.statements / (now - window.began);
    // The limit hardly held anything back, or need not (Little's law).
    if (2 * window.full < window.statements || most <= soon * rate) {
      raise();
      return;
    }
    const last = before;
    before = { limit: current, rate };
    change(last ? gain(last, before) : 1);
  }

  /** Raises the limit without a measurement. */
  function raise(): void {
    before = undefined;
    isHigh = false;
    change(step);
  }

  /** Changes the middle, and switches between the lower and the higher limit. */
  function change(factor: number): void {
    isWorthIt = factor > 1;
    middle = between(least, middle * between(1 / step, factor, step), most);
    isHigh = !isHigh;
    const few = between(least, Math.round(middle / probe), Math.max(most - 1, least));
    current = isHigh ? between(few + 1, Math.round(middle * probe), most) : few;
    window = createWindow(current);
  }

  return {
    get current() {
      return current;
    },
    /** Begins to measure anew. */
    restart(): void {
      window = createWindow(current);
    },
    /** Called when a request has to wait. Raises the limit if nothing has finished for `stuck`: then a lock is in the way, not load. */
    noteWaiting(): void {
      if (performance.now() - window.lastEnded > stuck) raise();
    },
    /** Called when a statement has ended. @param wasFull whether the limit was reached before. */
    statementEnded(wasFull: boolean): void {
      const now = performance.now();
      count(window, wasFull, now);
      const times = isHigh && isWorthIt && middle === most ? longWindow : 1;
      if (isEnough(window, now, times)) judge(now);
    },
  };
}

/** The throughput that was measured at a limit, in statements per millisecond. */
interface Trial {
  readonly limit: number;
  readonly rate: number;
}

/** More than 1 if the higher limit is worth it: if it raises throughput by more than the square root of what it raises the limit by. */
function gain(one: Trial, other: Trial): number {
  const [few, many] = one.limit < other.limit ? [one, other] : [other, one];
  return many.rate / few.rate / Math.sqrt(many.limit / few.limit);
}

/** What was measured since the limit was changed. */
function createWindow(limit: number) {
  const now = performance.now();
  // Statements that began before the change do not count.
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

type Window = ReturnType<typeof createWindow>;

const between = (least: number, value: number, most: number) => Math.min(Math.max(least, value), most);
