/** Turns, one after the other. */

import { createSignal } from './waiting.ts';

export interface Mutex {
  /** Waits for the caller's turn, in the order of the calls, and returns the function that ends it. */
  acquire(): Promise<() => void>;
}

export function createMutex(): Mutex {
  let last = Promise.resolve();
  return {
    acquire() {
      const before = last;
      const { promise, settle } = createSignal();
      last = promise;
      return before.then(() => settle);
    },
  };
}
