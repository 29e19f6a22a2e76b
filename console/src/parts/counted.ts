/** A number with its noun: `1 session`, `2,000 sessions`. */

import { numberText } from './number.ts';

/** @param what the noun in the singular. */
export const counted = (count: number, what: string): string =>
  `${numberText(count)} ${count === 1 ? what : `${what}s`}`;
