/** How long a random test runs: a few runs in the suite, and the given minutes under `npm run fuzz`. */

const minutes = Number(process.env.FUZZ_MINUTES ?? 0);

/** The options of fast-check. @param numRuns how often the test runs in the suite. */
export function fuzzed(numRuns: number) {
  return minutes > 0
    ? {
        numRuns: Number.MAX_SAFE_INTEGER,
        interruptAfterTimeLimit: minutes * 60_000,
        markInterruptAsFailure: false,
      }
    : { numRuns };
}

/** In milliseconds: the timeout of such a test. */
export const fuzzTimeout = minutes * 60_000 + 30_000;
