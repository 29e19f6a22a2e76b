/** How much one filter and one order may say. */

export const bounds = {
  /** Comparisons, `isNull`, links, and each of what stands in `and`, `or` and `not`. */
  conditions: 50,
  /** Levels of `and`, `or`, `not` and links beneath one another. */
  depth: 5,
  /** Items of one `in`. */
  items: 100,
  /** Characters of what a text is to contain or start with: PostgreSQL reads it anew for each row. */
  pattern: 200,
  /** Fields of one order. */
  keys: 3,
} as const;
