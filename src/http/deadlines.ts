/** How long requests may take: one timer for all of them, since all may take equally long. */

import type { Exchange } from './exchange.ts';
import type { Underway } from './underway.ts';

export interface Deadlines {
  begin(exchange: Exchange): void;
  /** Must be told when a request that is still under way has its response, as an operation of a WebSocket may be. */
  end(exchange: Exchange): void;
}

/**
 * @param longest how long a request may take, in milliseconds, not counting what its own client takes to send it.
 * @param onTimeout told of a request that takes longer, by a hundredth at most, and has no response yet.
 */
export function createDeadlines(
  underway: Underway,
  longest: number,
  onTimeout: (exchange: Exchange) => void,
): Deadlines {
  let timer: NodeJS.Timeout | undefined;

  function wait(ms: number): void {
    // Must not keep a process alive that stops: what is under way has a connection that does.
    timer = setTimeout(check, Math.max(Math.ceil(ms), longest / 100)).unref();
  }

  /** Waits again for the earliest deadline there is. Its request is mostly over by then, and another has become the earliest. */
  function check(): void {
    timer = undefined;
    const now = performance.now();
    let earliest = Number.POSITIVE_INFINITY;
    for (const exchange of [...underway]) {
      if (exchange.deadline <= now) expire(exchange, now);
      earliest = Math.min(earliest, exchange.deadline);
    }
    if (earliest < Number.POSITIVE_INFINITY) wait(earliest - now);
  }

  function expire(exchange: Exchange, now: number): void {
    exchange.deadline = Number.POSITIVE_INFINITY;
    if (exchange.response.headersSent) return;
    // A client that sends too slowly has a timeout of its own.
    if (exchange.request.complete) onTimeout(exchange);
    else exchange.deadline = now + longest;
  }

  return {
    begin(exchange) {
      if (exchange.isOver) return;
      exchange.deadline = performance.now() + longest;
      if (timer === undefined) wait(longest);
    },
    end(exchange) {
      exchange.deadline = Number.POSITIVE_INFINITY;
    },
  };
}
