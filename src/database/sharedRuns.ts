/** Shares the runs of a function between callers. */

export type SharedRuns<Result> = ReturnType<typeof createSharedRuns<Result>>;

/** Runs a function at most once at a time. A caller never joins a run that began before the call, which may miss what the caller knows. */
export function createSharedRuns<Result>(run: () => Promise<Result>) {
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
    /** The current run. */
    get current(): Promise<Result> | undefined {
      return current;
    },
    /** A run that begins after the call: at once, or when the current run has ended. All who call in the meantime share it. */
    begin(): Promise<Result> {
      // There is a next run also for the moment between the end of the current one and its own beginning.
      if (next) return next;
      if (!current) return start();
      next = current.then(start, start);
      return next;
    },
    /** Settles when no run is left. */
    async settled(): Promise<void> {
      while (current ?? next) await Promise.allSettled([current, next]);
    },
  };
}
