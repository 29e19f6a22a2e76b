/** How long requests may take. */

import type { Exchange } from './exchange.ts';

export type Deadlines = ReturnType<typeof createDeadlines>;

/**
 * @param longest how long a request may take, in milliseconds, not counting what its own client takes to send it.
 * @param onTimeout called with a request that takes longer, and has no response yet.
 */
export function createDeadlines(longest: number, onTimeout: (exchange: Exchange) => void) {
  function expire(exchange: Exchange): void {
    exchange.deadline = undefined;
    if (exchange.response.headersSent) return;
    // A client that sends too slowly has a timeout of its own.
    if (exchange.request.complete) onTimeout(exchange);
    else begin(exchange);
  }

  /** Has no effect on a request whose deadline has begun already. */
  function begin(exchange: Exchange): void {
    // Must not keep a process alive that stops: what is under way has a connection that does.
    if (!exchange.isOver) exchange.deadline ??= setTimeout(expire, longest, exchange).unref();
  }

  return {
    begin,
    /** Must be called for each request that is over, and for one that goes on after its response, as in a WebSocket. */
    end(exchange: Exchange): void {
      clearTimeout(exchange.deadline);
      exchange.deadline = undefined;
    },
  };
}
