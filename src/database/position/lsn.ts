/** Positions in the write-ahead log of a server (PostgreSQL's documentation, "pg_lsn Type"): bytes since its beginning. */

export type Position = bigint;

/** Reads a position as PostgreSQL writes it, such as `16/B374D848`; undefined for any other text. */
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

/** The size, in bytes, of the header of a page of the log, and of the first page of a file. */
const pageHeader = 24;
const fileHeader = 40;

/**
 * The end of the last record, given the position at which the next one will be inserted. The two differ at the beginning of
 * a page, where the header comes first. A standby that has replayed everything reports the end of the last record, so on an
 * idle server it would never reach the insert position.
 * @param offset the offset of the position in its file.
 */
export function endOfLast(position: Position, offset: number, page: number): Position {
  if (offset === fileHeader) return position - BigInt(fileHeader);
  return offset > page && offset % page === pageHeader ? position - BigInt(pageHeader) : position;
}
