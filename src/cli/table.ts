/** Tables on a terminal. */

/** The rows below their titles, in aligned columns. */
export function table(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  // Names may have any characters. Control characters would break lines, or command the terminal.
  const lines = [titles, ...rows].map((cells) => cells.map((cell) => cell.replace(/\p{C}/gu, ' ')));
  const widths = titles.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  // The last column needs no padding.
  const pad = (cell: string, column: number) =>
    column === titles.length - 1 ? cell : cell.padEnd(widths[column] ?? 0);
  return lines.map((line) => `${line.map(pad).join('  ')}\n`).join('');
}
