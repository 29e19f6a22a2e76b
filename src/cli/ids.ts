/** Ids on the command line. */

/** The largest `integer` of PostgreSQL. */
const largest = 2 ** 31 - 1;

/** Undefined for a text that cannot be an id. */
export function parseId(text: string): number | undefined {
  const id = Number(text);
  return /^[1-9]\d*$/.test(text) && id <= largest ? id : undefined;
}
