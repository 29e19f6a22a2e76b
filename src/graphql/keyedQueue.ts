/** A queue for each key, so that one client's work does not keep the processor from everybody else's. */

/** Runs work of the same key one after the other, and work of different keys at the same time. */
export type KeyedQueue<Key> = <Result>(key: Key, work: () => Promise<Result>) => Promise<Result>;

/** After how many milliseconds the next work of a key begins, though the one before has not ended. */
const longestTurn = 20_000;

/** @param pause settles when the next work of the key may begin. It is given how long the last took, in milliseconds. */
export function createKeyedQueue<Key>(pause: (took: number) => Promise<unknown>): KeyedQueue<Key> {
  /** Settles when the work that was added last for a key is done, and its pause is over. */
  const last = new Map<Key, Promise<unknown>>();
  return async (key, work) => {
    const before = last.get(key);
    let done = (): void => {};
    const mine = new Promise<void>((settle) => {
      done = () => {
        settle();
        if (last.get(key) === mine) last.delete(key);
      };
    });
    last.set(key, mine);
    await before;
    const began = performance.now();
    const timer = setTimeout(done, longestTurn).unref();
    try {
      return await work();
    } finally {
      clearTimeout(timer);
      pause(performance.now() - began).then(done);
    }
  };
}
