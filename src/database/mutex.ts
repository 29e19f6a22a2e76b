/** Turns, one after the other. */

export interface Mutex {
  /** Waits until it is the caller's turn, and gives the function that ends it. */
  acquire(): Promise<() => void>;
  /** How many wait while somebody has the turn. */
  waiting(): number;
}

/** Lets one holder at a time in, in the order in which they asked. */
export function createMutex(): Mutex {
  let last = Promise.resolve();
  let asked = 0;
  return {
    acquire() {
      asked++;
      const before = last;
      let end = () => {};
      last = new Promise((settle) => {
        end = () => {
          asked--;
          settle();
        };
      });
      return before.then(() => end);
    },
    waiting: () => asked - 1,
  };
}
