/** One run at a time, and none that begins too early for whoever asks for it. */

export interface Flights {
  /** The run that is under way. */
  readonly current: Promise<boolean> | undefined;
  /** A run that begins from now on: at once, or when the one under way is over, for all who ask meanwhile. */
  begin(): Promise<boolean>;
  /** Settles when there is no run any more. */
  settled(): Promise<void>;
}

/** @param run gives whether it succeeded, and does not reject. */
export function createFlights(run: () => Promise<boolean>): Flights {
  let current: Promise<boolean> | undefined;
  let next: Promise<boolean> | undefined;

  function start(): Promise<boolean> {
    const running = run().finally(() => {
      if (current === running) current = undefined;
    });
    current = running;
    return running;
  }

  return {
    get current() {
      return current;
    },
    begin() {
      if (!current) return start();
      next ??= current.then(() => {
        next = undefined;
        return start();
      });
      return next;
    },
    async settled() {
      while (current ?? next) await Promise.allSettled([current, next]);
    },
  };
}
