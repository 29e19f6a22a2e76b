/** How often a random test runs: a few times in the suite, and for as long as told under `npm run fuzz`. */

const minutes = Number(process.env.FUZZ_MINUTES ?? 0);

/** The options of fast-check for a test that runs so many times in the suite. */
export function fuzzed(numRuns: number) {
  return minutes > 0
    ? {
        numRuns: Number.MAX_SAFE_INTEGER,
        interruptAfterTimeLimit: minutes * 60_000,
        markInterruptAsFailure: false,
      }
    : { numRuns };
}

/** How long such a test may take. */
export const fuzzTimeout = minutes * 60_000 + 30_000;
