/** Work that waits for its turn, so that one client's does not keep everybody else's from the processor. */

/** Does work of the same key one after the other. */
export type KeyedQueue<Key> = <Result>(key: Key, work: () => Promise<Result>) => Promise<Result>;

/** How long, in milliseconds, others wait for work that does not end. */
const longestTurn = 20_000;

/** @param pause is what is waited for between two, given how long the first of them took, in milliseconds. */
export function createKeyedQueue<Key>(pause: (took: number) => Promise<unknown>): KeyedQueue<Key> {
  /** When the last of a key is done, and its pause over. */
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
