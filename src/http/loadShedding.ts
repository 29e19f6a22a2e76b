/** Load shedding: queues requests while the database is busy, and rejects those that would wait too long. */

import type { Concurrency } from '../database/concurrency.ts';
import { errorResponse, httpErrors } from './errorResponse.ts';
import type { Exchange } from './exchange.ts';
import { createFairQueue, type FairQueue, type Waiting } from './fairQueue.ts';
import type { HttpResponse } from './response.ts';
import type { StatementTurns } from './statementTurns.ts';
import type { Endpoint } from './target.ts';

export interface LoadShedder {
  /**
   * Lets a request through, at once or after a wait, or rejects it. Must be called for every request before it uses the
   * database. A request that was let through never waits again.
   * @returns whether the request was rejected.
   * @param who returns the key of the client, by which waiting requests are served in turn.
   * @param size how many requests a batch counts as.
   */
  shed(exchange: Exchange, who: () => number | string, size?: number): boolean | Promise<boolean>;
  /** Whether there is overload: a request was rejected a moment ago. */
  isOverload(): boolean;
  /** Rejects the next request of a client, and counts it, if it would be rejected at once. Returns whether it was. */
  tryReject(who: number | string): boolean;
  /** For the metrics. */
  readonly figures: {
    readonly limit: number;
    readonly waiting: number;
    readonly rejected: number;
  };
}

export interface LoadSheddingOptions {
  readonly concurrency: Concurrency;
  /** The statements of requests that were let through, and of live queries. */
  readonly statements: Pick<StatementTurns, 'users' | 'isWaiting' | 'length' | 'serve'>;
  /** How many requests may wait, once the queue has not been empty for a while. */
  readonly maxWaiting: number;
  /** How long, in milliseconds, requests may wait before that counts as overload. */
  readonly longestWait?: number | undefined;
  /** Called with each request that is let through or begins to wait. */
  begun(exchange: Exchange): void;
}

/** For `lasts` ms after the queue was empty it may hold `factor` times as many requests: a burst is no overload. */
const burst = { lasts: 100, factor: 3 };

/** Overload ends this many milliseconds after the last request was rejected. */
const overloadLasts = 1_000;

/** It ends sooner if no request has waited for this many milliseconds: a burst must not prolong it. */
const overloadEndsAfter = 200;

/**
 * How many requests may wait under overload: as many as are served in `lasts` ms, or as `share` of the concurrency limit
 * (about as many as are let through in one turn of the event loop), or `least`, so that one client cannot fill the
 * queue alone. The largest of the three counts (docs/failures.md#overload).
 */
const shortLine = { lasts: 8, share: 0.75, least: 3 };

/** How often, in milliseconds, the queue is looked at while nothing else happens. */
const interval = 5;

/**
 * In milliseconds. If requests keep waiting for longer than this, for `lastsTooLong`, more arrive than are served. Not
 * shorter: clients that wait for each response before they send the next request cannot pile up without bound.
 */
const tooLong = 1_000;

/** How long, in milliseconds, that has to go on. */
const lastsTooLong = 300;

/** In seconds. What waits for the database now is done well before. */
const retryAfter = '1';

interface Entry extends Waiting {
  readonly exchange: Exchange;
  /** When it began to wait, in milliseconds. */
  readonly since: number;
  settle(isRejected: boolean): void;
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
      get rejected() {
        return queue.rejected;
      },
    },
  };
}

/** The queue of requests, which are let through in turn. */
function createQueue(options: Omit<LoadSheddingOptions, 'begun'>) {
  const { concurrency } = options;
  const line = createFairQueue<Entry>();
  const overload = createOverload(options);
  const watch = serve(line, options, overload);
  let rejected = 0;

  function reject(entry: Entry | undefined, now: number): void {
    overload.begin(now);
    rejected++;
    entry?.settle(true);
  }

  /** Rejects as many as are too many. A single entry may stay, however many requests it counts as. */
  function shorten(now: number): void {
    if (line.entries < 2 || !overload.isTooLong(line, now)) return;
    overload.begin(now);
    for (const entry of line.drop(() => overload.isTooLong(line, now))) reject(entry, now);
  }

  return {
    get length() {
      return line.length;
    },
    get rejected() {
      return rejected;
    },
    isOverload: () => overload.isNow(performance.now()),
    isNeeded: () => line.entries > 0 || concurrency.free() <= 0,
    /** Lets a request through while no other waits. */
    pass() {
      overload.served(performance.now());
      return false;
    },
    /** Rejects the request if the queue is full and no client has more entries in it than the asking one; then shortens the queue. */
    rejectIfFull(asking: Waiting): boolean {
      const now = performance.now();
      if (line.entries === 0) return false;
      const withIt = { length: line.length + asking.size, entries: line.entries + 1 };
      if (!overload.isTooLong(withIt, now) || !line.wouldHaveMost(asking)) return false;
      reject(undefined, now);
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

/** Serves the queue whenever a statement has ended, and by a timer once the returned function is called. */
function serve(line: FairQueue<Entry>, options: ServeOptions, overload: Overload): () => void {
  const { concurrency, statements } = options;
  let isServing = false;
  let isWatched = false;
  /** Requests and statements take turns: neither may keep the others waiting for as long as more come. */
  let isTurnOfStatements = false;

  concurrency.onEnded(() => {
    if (isServing || (line.entries === 0 && statements.length === 0)) return;
    isServing = true;
    // The connection is free again only after this event.
    queueMicrotask(() => {
      isServing = false;
      if (isTurnOfStatements && statements.serve()) {
        isTurnOfStatements = false;
        return;
      }
      // If requests were let through, the connection is for them.
      isTurnOfStatements = letThrough(line, options, overload);
      if (!isTurnOfStatements) statements.serve();
    });
  });

  /** Serves the queue by a timer while it is not empty. */
  function watch(): void {
    if (isWatched || line.entries === 0) return;
    isWatched = true;
    setTimeout(() => {
      isWatched = false;
      letThrough(line, options, overload);
      watch();
    }, interval);
  }
  return watch;
}

type ServeOptions = Pick<LoadSheddingOptions, 'concurrency' | 'statements'>;

/**
 * Lets as many requests through as there is room for. Users with waiting statements get no further requests through, and once as many
 * users have waiting statements as statements may run at once, nobody does: what has begun should end first.
 * @returns whether any request was let through.
 */
function letThrough(
  line: FairQueue<Entry>,
  { concurrency, statements }: ServeOptions,
  overload: Overload,
): boolean {
  const now = performance.now();
  const room = statements.users < concurrency.limit ? concurrency.free() : 0;
  let left = room;
  while (left > 0) {
    const entry = line.take((key) => !statements.isWaiting(key));
    if (!entry) break;
    const { exchange, size, since } = entry;
    overload.noteWait(now - since, now);
    // A request whose client has left is not run.
    if (!exchange.isOver) left -= size;
    if (!exchange.isOver) overload.served(now);
    entry.settle(exchange.isOver);
    if (line.entries === 0) overload.onEmptied();
  }
  return left < room;
}

interface Overload {
  isNow(now: number): boolean;
  /** Called when a request is rejected. */
  begin(now: number): void;
  /** Called when a request is let through that has waited for so many milliseconds. */
  noteWait(milliseconds: number, now: number): void;
  /** Called when the queue has become empty. */
  onEmptied(): void;
  /** Called when a request is the first to wait. */
  onFirstWaiting(now: number): void;
  /** Called when a request is let through. */
  served(now: number): void;
  /** Whether the queue is longer than allowed. */
  isTooLong(line: Pick<FairQueue<Entry>, 'length' | 'entries'>, now: number): boolean;
}

/**
 * A queue that is soon empty again is a burst, and does no harm. A standing queue is overload: it delays every request and
 * serves no more of them (the idea of CoDel, RFC 8289). Then the queue is held so short that requests which are served
 * have hardly waited, and the others are rejected at once.
 */
function createOverload({
  concurrency,
  maxWaiting,
  longestWait = tooLong,
}: Omit<LoadSheddingOptions, 'begun'>): Overload {
  let lastEmpty = 0;
  let lastRejection = Number.NEGATIVE_INFINITY;
  let lateSince: number | undefined;
  let untilRelieved: ReturnType<typeof setTimeout> | undefined;
  const pace = createPace();
  const isNow = (now: number) => now - lastRejection < overloadLasts;

  function end(): void {
    lastRejection = Number.NEGATIVE_INFINITY;
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
    lastRejection = now;
  }

  return {
    isNow,
    begin,
    noteWait(milliseconds: number, now: number): void {
      lateSince = milliseconds > longestWait ? (lateSince ?? now) : undefined;
      // Requests that waited for one slow statement, or for a lock, are soon done.
      if (lateSince !== undefined && now - lateSince > lastsTooLong) begin(now);
    },
    onEmptied(): void {
      if (!isNow(performance.now())) return;
      // By a timer: if the event loop lags, requests that have already arrived are read before it fires.
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

/** Over how many milliseconds the rate is measured. */
const counted = 100;

/** Measures how many requests are served in a millisecond. */
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

/** Made once: rejecting a request must cost next to nothing. */
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

/** The response to a rejected request. */
export const tooBusy = ({ endpoint }: Pick<Exchange, 'endpoint'>): HttpResponse => busy[endpoint];
