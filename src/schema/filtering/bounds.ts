/** Limits of one filter and of one order. */

export const bounds = {
  /** Conditions of a filter: each comparison, each link, and each item of `and`, `or` and `not` counts. */
  conditions: 50,
  /** Levels of nested `and`, `or`, `not` and links. */
  depth: 5,
  /** Items of one `in` list. */
  items: 100,
  /** Characters of a `contains` or `startsWith` pattern. PostgreSQL evaluates the pattern again for each row. */
  pattern: 200,
  /** Fields of one `orderBy`. */
  keys: 3,
} as const;
