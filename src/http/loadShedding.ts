/** Load shedding: turns requests away while too many wait for the database, and lets none wait for ever. */

import type pg from 'pg';
import type { Exchange } from './exchange.ts';

/**
 * Turns a request away, or lets it through, and returns whether it was turned away. Must be called for every request that
 * will need the database, before it does. One that is let through gets a response in time, whatever the database does;
 * to turn one away costs next to nothing.
 * @param requests how many a batch counts as: one alone joins the line where it finds a place for all of them, or nobody.
 */
export type LoadShedder = (exchange: Exchange, requests?: number) => boolean;

export interface LoadSheddingOptions {
  /** How many statements may wait for a connection, when some have for a while. */
  readonly maxWaiting: number;
  /** How long a request may take, in milliseconds, not counting what its own client takes to send it. */
  readonly longest: number;
  /** Told of a request that takes longer and has no response yet. */
  onTimeout(exchange: Exchange): void;
}

/** What the line may be for so long, in milliseconds: so many times as long. */
const burst = { lasts: 100, factor: 3 };

/** In seconds: what waits for a connection now is done well before. */
const retryAfter = '1';

/**
 * It is statements that are counted, not requests: they wait in one line, so their number says how long a new one
 * would wait, and the pool keeps it right also for clients that have left.
 *
 * A line that is soon empty again is a burst, and no harm. One that is not is overload, in which a long line has
 * everybody wait and serves nobody more (the idea of CoDel, RFC 8289).
 */
export function createLoadShedder(
  pool: Pick<pg.Pool, 'waitingCount'>,
  { maxWaiting, longest, onTimeout }: LoadSheddingOptions,
): LoadShedder {
  /** As how many requests each was let through. */
  const letThrough = new WeakMap<Exchange, number>();
  let lastEmpty = 0;

  function limit(exchange: Exchange): void {
    const { request, response, isOver } = exchange;
    // Nothing would clear the timer.
    if (isOver) return;
    const timer = setTimeout(() => {
      // A client that sends too slowly has a timeout of its own.
      if (!request.complete) timer.refresh();
      else if (!response.headersSent) onTimeout(exchange);
    }, longest);
    response.once('close', () => clearTimeout(timer));
  }

  return (exchange, requests = 1) => {
    const before = letThrough.get(exchange);
    if (before !== undefined && before >= requests) return false;
    const now = performance.now();
    if (pool.waitingCount === 0) lastEmpty = now;
    const longestLine = now - lastEmpty > burst.lasts ? maxWaiting : maxWaiting * burst.factor;
    if (pool.waitingCount > 0 && pool.waitingCount + requests > longestLine) {
      exchange.headers['Retry-After'] = retryAfter;
      return true;
    }
    letThrough.set(exchange, requests);
    if (before === undefined) limit(exchange);
    return false;
  };
}
