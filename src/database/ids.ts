/** The ids of records, with one rule for every API, command and cursor. */

/** The highest that PostgreSQL's `integer` can hold, and GraphQL's Int as well. */
export const largestId = 2 ** 31 - 1;

/** Reads an id: digits without a sign or a leading zero. Undefined for any other text. */
export function readId(text: string): number | undefined {
  const id = Number(text);
  return /^[1-9]\d*$/.test(text) && id <= largestId ? id : undefined;
}
