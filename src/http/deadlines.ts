/** How long requests may take: one timer for all of them, since all may take equally long. */

import type { Exchange } from './exchange.ts';

export interface Deadlines {
  begin(exchange: Exchange): void;
  /** Must be told when an exchange is over, so that nothing of it is remembered. */
  end(exchange: Exchange): void;
}

/**
 * @param longest how long a request may take, in milliseconds, not counting what its own client takes to send it.
 * @param onTimeout told of a request that takes longer and has no response yet.
 */
export function createDeadlines(longest: number, onTimeout: (exchange: Exchange) => void): Deadlines {
  /** Until when each may take. Whoever began first is the first, and has the earliest. */
  const underway = new Map<Exchange, number>();
  let timer: NodeJS.Timeout | undefined;

  /** Waits for the earliest there is, which is mostly over by then, and another has become the earliest. */
  function wait(): void {
    const [earliest] = underway.values();
    // It goes on when all requests are over, and is to keep no process that stops: what is under way has a connection that does.
    timer =
      earliest === undefined ? undefined : setTimeout(check, Math.ceil(earliest - performance.now())).unref();
  }

  function check(): void {
    const now = performance.now();
    for (const [exchange, deadline] of underway) {
      if (deadline > now) break;
      underway.delete(exchange);
      if (exchange.isOver || exchange.response.headersSent) continue;
      // A client that sends too slowly has a timeout of its own.
      if (exchange.request.complete) onTimeout(exchange);
      else underway.set(exchange, now + longest);
    }
    wait();
  }

  return {
    begin(exchange) {
      // Nothing would end it.
      if (exchange.isOver) return;
      underway.set(exchange, performance.now() + longest);
      if (timer === undefined) wait();
    },
    end: (exchange) => void underway.delete(exchange),
  };
}
