/** How long requests may take. */

import type { Exchange } from './exchange.ts';

export interface Deadlines {
  /** Has no effect on a request whose deadline has begun already. */
  begin(exchange: Exchange): void;
  /** Must be called for each request that is over, and for one that is still under way and has its response, as an operation of a WebSocket may be. */
  end(exchange: Exchange): void;
}

/**
 * @param longest how long a request may take, in milliseconds, not counting what its own client takes to send it.
 * @param onTimeout called with a request that takes longer, and has no response yet.
 */
export function createDeadlines(longest: number, onTimeout: (exchange: Exchange) => void): Deadlines {
  function expire(exchange: Exchange): void {
    exchange.deadline = undefined;
    if (exchange.response.headersSent) return;
    // A client that sends too slowly has a timeout of its own.
    if (exchange.request.complete) onTimeout(exchange);
    else begin(exchange);
  }

  function begin(exchange: Exchange): void {
    // Must not keep a process alive that stops: what is under way has a connection that does.
    if (!exchange.isOver) exchange.deadline ??= setTimeout(expire, longest, exchange).unref();
  }

  return {
    begin,
    end(exchange) {
      clearTimeout(exchange.deadline);
      exchange.deadline = undefined;
    },
  };
}
