/** Positions in the log of a server (PostgreSQL's documentation, "pg_lsn Type"): bytes since it was made. */

export type Position = bigint;

/** As PostgreSQL writes it, such as `16/B374D848`; undefined for what is none. */
export function parsePosition(text: string): Position | undefined {
  const [, high, low] = /^([\dA-F]{1,8})\/([\dA-F]{1,8})$/i.exec(text) ?? [];
  return high === undefined || low === undefined
    ? undefined
    : (BigInt(`0x${high}`) << 32n) | BigInt(`0x${low}`);
}

export function formatPosition(position: Position): string {
  const half = (value: bigint) => value.toString(16).toUpperCase();
  return `${half(position >> 32n)}/${half(position & 0xffffffffn)}`;
}

/** What each page of the log begins with, in bytes, and the first page of a file. */
const pageHeader = 24;
const fileHeader = 40;

/**
 * Where the last record ends, given where the next one will begin. These differ where that begins a page, whose header
 * comes first: a standby that has replayed everything stands before it, and on an idle server it would for good.
 * @param offset of the position in its file.
 */
export function endOfLast(position: Position, offset: number, page: number): Position {
  if (offset === fileHeader) return position - BigInt(fileHeader);
  return offset > page && offset % page === pageHeader ? position - BigInt(pageHeader) : position;
}
