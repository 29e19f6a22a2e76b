/** Runs a function at most once at a time. A caller never joins a run that began before the call, which may miss what the caller knows. */

export interface Flights {
  /** The current run. */
  readonly current: Promise<boolean> | undefined;
  /** A run that begins after the call: at once, or when the current run has ended. All who call in the meantime share it. */
  begin(): Promise<boolean>;
  /** Settles when no run is left. */
  settled(): Promise<void>;
}

/** @param run returns whether it succeeded, and never rejects. */
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
