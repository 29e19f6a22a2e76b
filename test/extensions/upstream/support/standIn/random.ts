/** Pseudo-random numbers. The same seed gives the same numbers, so that two stand-ins can be equal. */

export interface Random {
  /** At least 0 and below 1. */
  next(): number;
  /** A whole number of at least 0 and below `end`. */
  below(end: number): number;
  pick<Value>(values: readonly [Value, ...Value[]]): Value;
}

/** The generator "mulberry32". */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (end: number) => Math.floor(next() * end);
  return { next, below, pick: (values) => values[below(values.length)] ?? values[0] };
}
