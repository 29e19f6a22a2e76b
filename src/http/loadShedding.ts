/** Load shedding: has requests wait while the database has enough to do, and turns away what would wait too long. */

import type { Concurrency } from '../database/concurrency.ts';
import { errorResponse, httpErrors } from './errorResponse.ts';
import type { Endpoint, Exchange } from './exchange.ts';
import type { HttpResponse } from './response.ts';
import { createWaitingLine, type Waiting, type WaitingLine } from './waitingLine.ts';

export interface LoadShedder {
  /**
   * Lets a request through at once, or when it is its turn, or turns it away; returns whether it was turned away. Must be
   * asked for every request that will need the database, before it does. One that was let through never waits again.
   * @param who whose request it is: everybody has their turn.
   * @param size how many requests a batch counts as.
   */
  shed(exchange: Exchange, who: () => number | string, size?: number): boolean | Promise<boolean>;
  /** For whoever watches the gateway. */
  readonly figures: {
    readonly limit: number;
    readonly waiting: number;
    readonly turnedAway: number;
  };
}

export interface LoadSheddingOptions {
  readonly concurrency: Concurrency;
  /** How many requests may wait, when some have for a while. */
  readonly maxWaiting: number;
  /** Told of a request that is let through, or begins to wait. */
  begun(exchange: Exchange): void;
}

/** What the line may be for so long, in milliseconds: so many times as long. */
const burst = { lasts: 100, factor: 3 };

/** In milliseconds: it is overload for so long after somebody was turned away. */
const remembered = 1_000;

/** In milliseconds: under overload, what has waited for so long is turned away, but for the newest of who is next. */
const longestWait = 20;

/** In milliseconds: how often the line is looked at while nothing else happens. */
const interval = 5;

/** In milliseconds: when it takes so long until it is somebody's turn, more are coming than are done. */
const tooLong = 1_000;

/** In seconds: what waits for the database now is done well before. */
const retryAfter = '1';

interface Entry extends Waiting {
  readonly exchange: Exchange;
  settle(isTurnedAway: boolean): void;
}

export function createLoadShedder({ concurrency, maxWaiting, begun }: LoadSheddingOptions): LoadShedder {
  /** As how many requests each was asked for. */
  const sizes = new WeakMap<Exchange, number>();
  const queue = createQueue(concurrency, maxWaiting);
  return {
    shed(exchange, who, size = 1) {
      const before = sizes.get(exchange);
      if (before !== undefined && before >= size) return false;
      if (before === undefined) begun(exchange);
      sizes.set(exchange, size);
      return queue.isNeeded() ? queue.wait(exchange, who(), size) : false;
    },
    figures: {
      get limit() {
        return concurrency.limit;
      },
      get waiting() {
        return queue.length;
      },
      get turnedAway() {
        return queue.turnedAway;
      },
    },
  };
}

/** The requests that wait, from where they are let through when it is their turn. */
function createQueue(concurrency: Concurrency, maxWaiting: number) {
  const line = createWaitingLine<Entry>();
  const overload = createOverload(maxWaiting);
  let turnedAway = 0;
  let isServing = false;
  let isWatched = false;

  function turnAway(entry: Entry | undefined, now: number): void {
    if (!entry) return;
    overload.begin(now);
    turnedAway++;
    entry.settle(true);
  }

  const serve = () => letThrough(line, concurrency.free(), overload);

  concurrency.onEnded(() => {
    if (line.length === 0 || isServing) return;
    isServing = true;
    // When the connection is free again.
    queueMicrotask(() => {
      isServing = false;
      serve();
    });
  });

  /** Looks after those who wait also while nothing else happens. */
  function watch(): void {
    if (isWatched || line.length === 0) return;
    isWatched = true;
    setTimeout(() => {
      isWatched = false;
      serve();
      const now = performance.now();
      if (overload.isNow(now))
        for (const entry of line.dropSince(now - longestWait, concurrency.limit)) turnAway(entry, now);
      watch();
    }, interval);
  }

  return {
    get length() {
      return line.length;
    },
    get turnedAway() {
      return turnedAway;
    },
    isNeeded: () => line.length > 0 || concurrency.free() <= 0,
    wait(exchange: Exchange, key: Entry['key'], size: number): Promise<boolean> {
      const now = performance.now();
      if (line.length === 0) overload.lineWasEmpty(now);
      return new Promise((settle) => {
        line.add({ exchange, key, size, since: now, settle });
        const most = Math.max(overload.mostWaiting(now), size);
        while (line.length > most) turnAway(line.drop(), now);
        watch();
      });
    },
  };
}

/** Lets requests through for which there is room. They make use of it before anything else happens. */
function letThrough(line: WaitingLine<Entry>, room: number, overload: Overload): void {
  const now = performance.now();
  for (let left = room; left > 0; ) {
    const entry = line.take(overload.isNow(now));
    if (!entry) return;
    const { exchange, size, since } = entry;
    if (now - since > tooLong) overload.begin(now);
    // What is done for a client that has left is for nobody.
    if (!exchange.isOver) left -= size;
    entry.settle(exchange.isOver);
  }
}

interface Overload {
  isNow(now: number): boolean;
  /** Somebody is turned away, or had to wait for too long. */
  begin(now: number): void;
  /** Somebody comes who is the first in the line. */
  lineWasEmpty(now: number): void;
  /** How many requests may wait. */
  mostWaiting(now: number): number;
}

/**
 * A line that is soon empty again is a burst, and no harm. One that is not is overload, in which a long line has
 * everybody wait and serves nobody more (the idea of CoDel, RFC 8289). Then the newest are served first, whose clients
 * are surely there, and those that have waited longest make room: what is served has hardly waited at all.
 */
function createOverload(maxWaiting: number): Overload {
  let lastEmpty = 0;
  let lastTurnedAway = Number.NEGATIVE_INFINITY;
  const isNow = (now: number) => now - lastTurnedAway < remembered;
  return {
    isNow,
    begin(now: number): void {
      lastTurnedAway = now;
    },
    lineWasEmpty(now: number): void {
      lastEmpty = now;
    },
    mostWaiting(now: number): number {
      return isNow(now) || now - lastEmpty > burst.lasts ? maxWaiting : maxWaiting * burst.factor;
    },
  };
}

/** Made once: saying no must cost next to nothing. */
const busy: Readonly<Record<Endpoint, HttpResponse>> = {
  rest: errorResponse('rest', httpErrors.tooBusy, { 'Retry-After': retryAfter }),
  graphql: errorResponse('graphql', httpErrors.tooBusy, { 'Retry-After': retryAfter }),
  page: errorResponse('page', httpErrors.tooBusy, { 'Retry-After': retryAfter }),
};

/** The response to what was turned away. */
export const tooBusy = ({ endpoint }: Exchange): HttpResponse => busy[endpoint];
