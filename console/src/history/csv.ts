/** Comma-separated values, as RFC 4180 has them. */

export type Cell = string | number | boolean | null | undefined;

/** What a file begins with, so that spreadsheets read it as UTF-8. */
export const byteOrderMark = '\uFEFF';

/** A line, with what ends it. */
export const csvLine = (cells: readonly Cell[]): string => `${cells.map(csvCell).join(',')}\r\n`;

/** Text that a spreadsheet would take for a formula, and run. */
const formula = /^[=+\-@\t\r]/;

function csvCell(cell: Cell): string {
  if (cell == null) return '';
  if (typeof cell !== 'string') return String(cell);
  const text = formula.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
