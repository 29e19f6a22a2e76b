/** What many ask for at once, done once for all of them. */

/**
 * Gives whoever asks what began after they asked: what is under way already would not know of what they know. Those who
 * ask meanwhile share the next one.
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
