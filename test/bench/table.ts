/** Prints figures in aligned columns. */

/** A table with a title. Its first row is the head. */
export interface Table {
  readonly title: string;
  readonly rows: readonly (readonly string[])[];
}

export function printTable({ title, rows }: Table): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) =>
    row
      // Text is aligned left, figures right.
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd(),
  );
  return `${title}\n${lines.map((line) => `  ${line}\n`).join('')}`;
}

/** A number with so many decimals; a dash for one that was not measured. */
export const figure = (value = Number.NaN, decimals = 0): string =>
  Number.isNaN(value)
    ? '-'
    : value.toLocaleString('en', { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
