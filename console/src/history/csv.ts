/** Comma-separated values (RFC 4180). */

export type Cell = string | number | boolean | null | undefined;

/** The first character of a file, by which spreadsheets recognise UTF-8. */
export const byteOrderMark = '\uFEFF';

/** A line, with its line break. */
export const csvLine = (cells: readonly Cell[]): string => `${cells.map(csvCell).join(',')}\r\n`;

/** The beginning of a text that a spreadsheet would run as a formula. */
const formula = /^[=+\-@\t\r]/;

function csvCell(cell: Cell): string {
  if (cell == null) return '';
  if (typeof cell !== 'string') return String(cell);
  const text = formula.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
