/** Load shedding: has requests wait while the database has enough to do, and turns away what would wait too long. */

import type { Concurrency } from '../database/concurrency.ts';
import { errorResponse, httpErrors } from './errorResponse.ts';
import type { Endpoint, Exchange } from './exchange.ts';
import type { HttpResponse } from './response.ts';
import { createWaitingLine, type Waiting } from './waitingLine.ts';

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

/** In milliseconds: for so long after an overload, a line that is long again is no burst. */
const remembered = 1_000;

/** In milliseconds: under overload, whoever has waited for so long is turned away. */
const longestWait = 20;

/** In milliseconds: how often the line is looked at while nothing else happens. */
const interval = 5;

/** In seconds: what waits for the database now is done well before. */
const retryAfter = '1';

interface Entry extends Waiting {
  readonly exchange: Exchange;
  settle(isTurnedAway: boolean): void;
}

/**
 * A line that is soon empty again is a burst, and no harm. One that is not is overload, in which a long line has
 * everybody wait and serves nobody more (the idea of CoDel, RFC 8289). Then the newest are served first, whose clients
 * are surely there, and those that have waited longest make room: what is served has hardly waited at all.
 */
export function createLoadShedder({ concurrency, maxWaiting, begun }: LoadSheddingOptions): LoadShedder {
  /** As how many requests each was let through. */
  const letThrough = new WeakMap<Exchange, number>();
  const line = createWaitingLine<Entry>();
  let lastEmpty = 0;
  let overloaded = Number.NEGATIVE_INFINITY;
  let turnedAway = 0;
  let timer: NodeJS.Timeout | undefined;

  const isOverloaded = (now: number) => now - overloaded < burst.lasts;

  function turnAway(entry: Entry | undefined, now: number): void {
    if (!entry) return;
    overloaded = now;
    turnedAway++;
    entry.settle(true);
  }

  /** Lets as many through as there is room for. They make use of it before anything else happens. */
  function serve(): void {
    const isNewestFirst = isOverloaded(performance.now());
    for (let free = concurrency.free(); free > 0; ) {
      const entry = line.take(isNewestFirst);
      if (!entry) break;
      // What is done for a client that has left is for nobody.
      if (!entry.exchange.isOver) {
        letThrough.set(entry.exchange, entry.size);
        free -= entry.size;
      }
      entry.settle(entry.exchange.isOver);
    }
    if (line.length === 0) lastEmpty = performance.now();
  }

  let isServing = false;
  concurrency.onEnded(() => {
    if (line.length === 0 || isServing) return;
    isServing = true;
    // When the connection is free again.
    queueMicrotask(() => {
      isServing = false;
      serve();
    });
  });

  function look(): void {
    serve();
    const now = performance.now();
    if (isOverloaded(now)) for (const entry of line.dropSince(now - longestWait)) turnAway(entry, now);
    timer = line.length > 0 ? setTimeout(look, interval) : undefined;
  }

  function wait(exchange: Exchange, key: number | string, size: number): Promise<boolean> {
    const now = performance.now();
    if (line.length === 0) lastEmpty = now;
    return new Promise((settle) => {
      line.add({ exchange, key, size, since: now, settle });
      const isBurst = now - lastEmpty <= burst.lasts && now - overloaded > remembered;
      const most = isBurst ? maxWaiting * burst.factor : maxWaiting;
      while (line.length > Math.max(most, size)) turnAway(line.drop(), now);
      timer ??= setTimeout(look, interval);
    });
  }

  return {
    shed(exchange, who, size = 1) {
      const before = letThrough.get(exchange);
      if (before !== undefined && before >= size) return false;
      if (before === undefined) begun(exchange);
      if (line.length > 0 || concurrency.free() <= 0) return wait(exchange, who(), size);
      letThrough.set(exchange, size);
      return false;
    },
    figures: {
      get limit() {
        return concurrency.limit;
      },
      get waiting() {
        return line.length;
      },
      get turnedAway() {
        return turnedAway;
      },
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
