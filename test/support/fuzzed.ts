/** How long a random test runs: not long in the suite, and the given minutes under `npm run fuzz`. */

const minutes = Number(process.env.FUZZ_MINUTES ?? 0);

/** In milliseconds: the timeout of a random test. */
export const fuzzTimeout = minutes * 60_000 + 30_000;
