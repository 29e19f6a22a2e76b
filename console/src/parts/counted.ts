/** How many there are, in words: `1 session`, `2,000 sessions`. */

import { numberText } from './number.ts';
export const counted = (count: number, what: string): string =>
  `${numberText(count)} ${count === 1 ? what : `${what}s`}`;
