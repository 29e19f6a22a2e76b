/** Shares the runs of a function between callers. */

export interface SharedRuns<Result> {
  /** The current run. */
  readonly current: Promise<Result> | undefined;
  /** A run that begins after the call: at once, or when the current run has ended. All calls in the meantime share it. */
  begin(): Promise<Result>;
  /** Settles when no run is left. */
  settled(): Promise<void>;
}

/** Runs a function at most once at a time. A caller never joins a run that began before the call: it may miss a change that led to the call. */
export function createSharedRuns<Result>(run: () => Promise<Result>): SharedRuns<Result> {
  let current: Promise<Result> | undefined;
  let next: Promise<Result> | undefined;

  function start(): Promise<Result> {
    next = undefined;
    const begun = run();
    const clear = () => {
      if (current === begun) current = undefined;
    };
    current = begun;
    begun.then(clear, clear);
    return begun;
  }

  return {
    get current() {
      return current;
    },
    begin() {
      // There is a next run also for the moment between the end of the current one and its own beginning.
      if (next) return next;
      if (!current) return start();
      next = current.then(start, start);
      return next;
    },
    async settled() {
      while (current ?? next) await Promise.allSettled([current, next]);
    },
  };
}
