/** The exchanges that are under way. */

import type { Exchange } from './exchange.ts';

/**
 * In no particular order. Adding and removing take as long however many there are.
 *
 * This is no `Set`, since one that changes with every request keeps requests that are over in memory. When V8 gives a `Set` or a `Map` a
 * new table, the former table refers to the new one. If an empty table has become old in a pause, all tables after it
 * outlive the collections of the young generation, together with every request that was in one of them: a quarter of the
 * processor time of cached responses was spent on copying them.
 */
export interface Underway extends Iterable<Exchange> {
  add(exchange: Exchange): void;
  remove(exchange: Exchange): void;
}

export function createUnderway(): Underway {
  const exchanges: Exchange[] = [];
  return {
    add(exchange) {
      exchange.position = exchanges.push(exchange) - 1;
    },
    remove(exchange) {
      if (exchanges[exchange.position] !== exchange) return;
      const last = exchanges.pop();
      if (last === undefined || last === exchange) return;
      last.position = exchange.position;
      exchanges[last.position] = last;
    },
    [Symbol.iterator]: () => exchanges.values(),
  };
}
