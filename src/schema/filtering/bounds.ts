/** How much one filter and one order may say. */

export const bounds = {
  /** Comparisons, and `isNull`. */
  conditions: 50,
  /** Levels of `and`, `or`, `not` and links beneath one another. */
  depth: 5,
  /** Items of one `in`. */
  items: 100,
  /** Fields of one order. */
  keys: 3,
} as const;
