/** The gate before the database: sheds requests while too many wait, and lets none wait for ever. */

import type pg from 'pg';
import { send } from './response.ts';
import type { Exchange } from './exchange.ts';
import { httpErrors, errorResponse } from './errorResponse.ts';

/**
 * Must be asked by every request that will need the database, before it does. A request that is let in is answered
 * in time, whatever the database does; one that is not is to be refused at once, which costs next to nothing.
 */
export type Gate = (exchange: Exchange) => boolean;

export interface LoadSheddingOptions {
  /** How many statements may wait for a connection, when some have for a while. */
  readonly maxWaiting: number;
  /** How long a request may take, in milliseconds, not counting what its own client takes to send it. */
  readonly longest: number;
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
export function createLoadShedder(pool: Pick<pg.Pool, 'waitingCount'>, { maxWaiting, longest }: LoadSheddingOptions): Gate {
  const letIn = new WeakSet<Exchange>();
  let lastEmpty = 0;

  /** Answers the request if nobody has by then. */
  function limit(exchange: Exchange): void {
    const { request, response, endpoint } = exchange;
    const timer = setTimeout(() => {
      // Who sends too slowly is dealt with elsewhere.
      if (!request.complete) return timer.refresh();
      if (response.headersSent) return;
      exchange.report(new Error(`there was no answer after ${longest} ms`));
      send(exchange, errorResponse(endpoint, httpErrors.internal));
    }, longest);
    response.once('close', () => clearTimeout(timer));
  }

  return (exchange) => {
    if (letIn.has(exchange)) return true;
    const now = performance.now();
    if (pool.waitingCount === 0) lastEmpty = now;
    const longestLine = now - lastEmpty > burst.lasts ? maxWaiting : maxWaiting * burst.factor;
    if (pool.waitingCount >= longestLine) {
      exchange.headers['Retry-After'] = retryAfter;
      return false;
    }
    letIn.add(exchange);
    limit(exchange);
    return true;
  };
}
