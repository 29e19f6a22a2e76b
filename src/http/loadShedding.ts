/** Load shedding: has requests wait while the database has enough to do, and turns away what would wait too long. */

import type { Concurrency } from '../database/concurrency.ts';
import { errorResponse, httpErrors } from './errorResponse.ts';
import type { Exchange } from './exchange.ts';
import { createFairQueue, type FairQueue, type Waiting } from './fairQueue.ts';
import type { HttpResponse } from './response.ts';
import type { Endpoint } from './target.ts';

export interface LoadShedder {
  /**
   * Lets a request through at once, or when it is its turn, or turns it away; returns whether it was turned away. Must be
   * asked for every request that will need the database, before it does. One that was let through never waits again.
   * @param who whose request it is: everybody has their turn.
   * @param size how many requests a batch counts as.
   */
  shed(exchange: Exchange, who: () => number | string, size?: number): boolean | Promise<boolean>;
  /** Whether somebody was turned away just now. */
  isOverload(): boolean;
  /** Whether the next request of theirs would be turned away at once. It counts as if it was. */
  tryReject(who: number | string): boolean;
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
  /** How long, in milliseconds, it may take until it is anybody's turn, if not as long as usual. */
  readonly longestWait?: number | undefined;
  /** Told of a request that is let through, or begins to wait. */
  begun(exchange: Exchange): void;
}

/** For so long, in milliseconds, after the line was empty it may be so many times as long: a burst is no overload. */
const burst = { lasts: 100, factor: 3 };

/** In milliseconds: overload lasts for so long after the last request was turned away. */
const overloadLasts = 1_000;

/** It ends sooner where nobody has waited for so long, in milliseconds: many that come at once would prolong it. */
const overloadEndsAfter = 200;

/**
 * Under overload no more wait than are served in so many milliseconds, or than are let through in one turn of the event
 * loop, which are nearly as many as run at once; a few may always, so that one who floods does not take the only place.
 * The largest of the three counts (docs/failures.md#overload).
 */
const shortLine = { lasts: 15, share: 0.75, least: 3 };

/** In milliseconds: how often the line is looked at while nothing else happens. */
const interval = 5;

/**
 * In milliseconds: where requests have to wait for longer, and go on to, more come than are done. Not sooner: clients that
 * each wait for a response before they ask again may all be served, however many they are.
 */
const tooLong = 1_000;

/** In milliseconds: how long that has to go on. */
const lastsTooLong = 300;

/** In seconds: what waits for the database now is done well before. */
const retryAfter = '1';

interface Entry extends Waiting {
  readonly exchange: Exchange;
  /** Since when it waits, in milliseconds. */
  readonly since: number;
  settle(isTurnedAway: boolean): void;
}

export function createLoadShedder({ begun, ...options }: LoadSheddingOptions): LoadShedder {
  const { concurrency } = options;
  const queue = createQueue(options);
  return {
    shed(exchange, who, size = 1) {
      const before = exchange.countsAs;
      if (before >= size) return false;
      if (!queue.isNeeded()) {
        exchange.countsAs = size;
        if (before === 0) begun(exchange);
        return queue.pass();
      }
      const key = who();
      exchange.waitsAs = key;
      if (queue.rejectIfFull({ key, size })) return true;
      exchange.countsAs = size;
      if (before === 0) begun(exchange);
      return queue.wait(exchange, key, size);
    },
    isOverload: queue.isOverload,
    tryReject: (key) => queue.isNeeded() && queue.rejectIfFull({ key, size: 1 }),
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
function createQueue(options: Omit<LoadSheddingOptions, 'begun'>) {
  const { concurrency } = options;
  const line = createFairQueue<Entry>();
  const overload = createOverload(options);
  const watch = serve(line, concurrency, overload);
  let turnedAway = 0;

  function turnAway(entry: Entry | undefined, now: number): void {
    overload.begin(now);
    turnedAway++;
    entry?.settle(true);
  }

  /** Has no more wait than may; but what waits alone may, however many it counts as. */
  function shorten(now: number): void {
    if (line.entries < 2 || !overload.isTooLong(line, now)) return;
    overload.begin(now);
    for (const entry of line.drop(() => overload.isTooLong(line, now))) turnAway(entry, now);
  }

  return {
    get length() {
      return line.length;
    },
    get turnedAway() {
      return turnedAway;
    },
    isOverload: () => overload.isNow(performance.now()),
    isNeeded: () => line.entries > 0 || concurrency.free() <= 0,
    /** Lets a request through that finds nobody waiting. */
    pass() {
      overload.served(performance.now());
      return false;
    },
    /** Whether the line is full, and whoever asks has as much in it as anybody: then it is their request that is turned away. */
    rejectIfFull(asking: Waiting): boolean {
      const now = performance.now();
      if (line.entries === 0) return false;
      const withIt = { length: line.length + asking.size, entries: line.entries + 1 };
      if (!overload.isTooLong(withIt, now) || !line.wouldHaveMost(asking)) return false;
      turnAway(undefined, now);
      shorten(now);
      return true;
    },
    wait(exchange: Exchange, key: Entry['key'], size: number): Promise<boolean> {
      const now = performance.now();
      if (line.entries === 0) overload.onFirstWaiting(now);
      return new Promise((settle) => {
        line.add({ exchange, key, size, since: now, settle });
        shorten(now);
        watch();
      });
    },
  };
}

/** Serves the line when a statement has ended, and by the clock from when the function that it returns is called. */
function serve(line: FairQueue<Entry>, concurrency: Concurrency, overload: Overload): () => void {
  let isServing = false;
  let isWatched = false;

  concurrency.onEnded(() => {
    if (line.entries === 0 || isServing) return;
    isServing = true;
    // When the connection is free again.
    queueMicrotask(() => {
      isServing = false;
      letThrough(line, concurrency.free(), overload);
    });
  });

  /** Looks after those who wait also while nothing else happens. */
  function watch(): void {
    if (isWatched || line.entries === 0) return;
    isWatched = true;
    setTimeout(() => {
      isWatched = false;
      letThrough(line, concurrency.free(), overload);
      watch();
    }, interval);
  }
  return watch;
}

/** Lets requests through for which there is room. They make use of it before anything else happens. */
function letThrough(line: FairQueue<Entry>, room: number, overload: Overload): void {
  const now = performance.now();
  for (let left = room; left > 0; ) {
    const entry = line.take();
    if (!entry) return;
    const { exchange, size, since } = entry;
    overload.noteWait(now - since, now);
    // What is done for a client that has left is for nobody.
    if (!exchange.isOver) left -= size;
    if (!exchange.isOver) overload.served(now);
    entry.settle(exchange.isOver);
    if (line.entries === 0) overload.onEmptied();
  }
}

interface Overload {
  isNow(now: number): boolean;
  /** Somebody is turned away. */
  begin(now: number): void;
  /** Somebody's turn has come after so many milliseconds. */
  noteWait(milliseconds: number, now: number): void;
  /** Nobody waits any more. */
  onEmptied(): void;
  /** Somebody comes who is the first in the line. */
  onFirstWaiting(now: number): void;
  /** Somebody is let through. */
  served(now: number): void;
  /** Whether more wait than may. */
  isTooLong(line: Pick<FairQueue<Entry>, 'length' | 'entries'>, now: number): boolean;
}

/**
 * A line that is soon empty again is a burst, and no harm. One that is not is overload, in which a long line has
 * everybody wait and serves nobody more (the idea of CoDel, RFC 8289). Then it is kept so short that what is served has
 * hardly waited, and what is turned away is told at once.
 */
function createOverload({
  concurrency,
  maxWaiting,
  longestWait = tooLong,
}: Omit<LoadSheddingOptions, 'begun'>): Overload {
  let lastEmpty = 0;
  let lastTurnedAway = Number.NEGATIVE_INFINITY;
  let lateSince: number | undefined;
  let untilRelieved: ReturnType<typeof setTimeout> | undefined;
  const pace = createPace();
  const isNow = (now: number) => now - lastTurnedAway < overloadLasts;

  function end(): void {
    lastTurnedAway = Number.NEGATIVE_INFINITY;
  }

  /** How many entries may wait under overload. */
  function mostEntries(now: number): number {
    return Math.max(
      pace.perMillisecond(now) * shortLine.lasts,
      concurrency.limit * shortLine.share,
      shortLine.least,
    );
  }

  function begin(now: number): void {
    lastTurnedAway = now;
  }

  return {
    isNow,
    begin,
    noteWait(milliseconds: number, now: number): void {
      lateSince = milliseconds > longestWait ? (lateSince ?? now) : undefined;
      // What had to wait for one slow statement, or a lock, is soon done.
      if (lateSince !== undefined && now - lateSince > lastsTooLong) begin(now);
    },
    onEmptied(): void {
      if (!isNow(performance.now())) return;
      clearTimeout(untilRelieved);
      // By a timer: where the event loop is behind, what has come is read before it is its turn.
      untilRelieved = setTimeout(end, overloadEndsAfter).unref();
    },
    onFirstWaiting(now: number): void {
      clearTimeout(untilRelieved);
      lastEmpty = now;
    },
    served: pace.count,
    isTooLong({ length, entries }, now: number): boolean {
      if (isNow(now)) return entries > mostEntries(now) || length > maxWaiting;
      return length > (now - lastEmpty > burst.lasts ? maxWaiting : maxWaiting * burst.factor);
    },
  };
}

/** How long, in milliseconds, is counted to know how many are served in a millisecond. */
const counted = 100;

/** How many are served in how long. */
function createPace() {
  let began = 0;
  let count = 0;
  let known = 0;

  function perMillisecond(now: number): number {
    if (now - began >= counted) {
      known = count / (now - began);
      began = now;
      count = 0;
    }
    return known;
  }

  return {
    perMillisecond,
    count(now: number): void {
      perMillisecond(now);
      count++;
    },
  };
}

/** Made once: saying no must cost next to nothing. */
const busy: Readonly<Record<Endpoint, HttpResponse>> = {
  rest: prepare('rest'),
  graphql: prepare('graphql'),
  mcp: prepare('mcp'),
  page: prepare('page'),
};

function prepare(endpoint: Endpoint): HttpResponse {
  const response = errorResponse(endpoint, httpErrors.tooBusy, { 'Retry-After': retryAfter });
  return { ...response, forms: new Map() };
}

/** The response to what was turned away. */
export const tooBusy = ({ endpoint }: Pick<Exchange, 'endpoint'>): HttpResponse => busy[endpoint];
