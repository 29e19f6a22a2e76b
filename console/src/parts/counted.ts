/** How many there are, in words: `1 session`, `2,000 sessions`. */
export const counted = (count: number, what: string): string =>
  `${count.toLocaleString()} ${count === 1 ? what : `${what}s`}`;
