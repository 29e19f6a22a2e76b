/** Pseudo-random numbers. The same seed gives the same numbers, so that two stand-ins can be equal. */

import { seeded } from '../../../../support/random.ts';

export interface Random {
  /** At least 0 and below 1. */
  next(): number;
  /** A whole number of at least 0 and below `end`. */
  below(end: number): number;
  pick<Value>(values: readonly [Value, ...Value[]]): Value;
}

export function createRandom(seed: number): Random {
  const next = seeded(seed);
  const below = (end: number) => Math.floor(next() * end);
  return { next, below, pick: (values) => values[below(values.length)] ?? values[0] };
}
