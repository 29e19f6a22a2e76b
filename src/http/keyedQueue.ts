/** Queues that keep one client from occupying the processor. */

import { setTimeout as sleep } from 'node:timers/promises';

/** How long a user rests at most, in milliseconds. */
const longestRest = 1_000;

/** A queue for each user, where work is followed by a rest as long: a user keeps the processor busy for half of the time at most. */
export const createUserQueue = () => createKeyedQueue<number>((took) => sleep(Math.min(took, longestRest)));

/**
 * A queue for each key, so that one client cannot keep the processor busy for all others. Work of the same key runs one after the
 * other, and work of different keys concurrently.
 * @param pause settles when the next work of the key may begin. Called with the milliseconds that the last work took.
 */
export function createKeyedQueue<Key>(pause: (took: number) => Promise<unknown>) {
  /** Settles when the work that was added last for a key is done, and its pause is over. */
  const last = new Map<Key, Promise<unknown>>();
  return <Result>(key: Key, work: () => Promise<Result>): Promise<Result> => {
    let began = 0;
    const running = Promise.resolve(last.get(key)).then(() => {
      began = performance.now();
      return work();
    });
    const over = running
      .catch(() => {})
      .then(() => pause(performance.now() - began))
      .then(() => {
        if (last.get(key) === over) last.delete(key);
      });
    last.set(key, over);
    return running;
  };
}
