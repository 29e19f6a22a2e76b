/** Shares one run of a function between callers. */

/**
 * Runs at most one at a time. A caller never joins a run that began before the call, which may miss what the caller knows:
 * all who call during a run share the next one.
 */
export function inBatches<Result>(run: () => Promise<Result>): () => Promise<Result> {
  let running: Promise<unknown> | undefined;
  let next: Promise<Result> | undefined;

  function begin(): Promise<Result> {
    next = undefined;
    const begun = run();
    const settled = begun.then(
      () => {},
      () => {},
    );
    running = settled;
    settled.then(() => {
      if (running === settled) running = undefined;
    });
    return begun;
  }

  return () => {
    if (!running) return begin();
    next ??= running.then(begin);
    return next;
  };
}
