/** Data as a table on a terminal. */

/** The rows below their titles, one column below the other. */
export function table(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  // Names may be from anywhere: none is to begin a line, or to tell the terminal anything.
  const lines = [titles, ...rows].map((cells) => cells.map((cell) => cell.replace(/\p{C}/gu, ' ')));
  const widths = titles.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  // Nothing stands behind the last column, so that it needs no width.
  const pad = (cell: string, column: number) =>
    column === titles.length - 1 ? cell : cell.padEnd(widths[column] ?? 0);
  return lines.map((line) => `${line.map(pad).join('  ')}\n`).join('');
}
