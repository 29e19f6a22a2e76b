/** Prints figures in aligned columns. */

import type { Comparison } from './compare.ts';

/** A table with a title. Its first row is the head. */
export interface Table {
  readonly title: string;
  readonly rows: readonly (readonly string[])[];
}

export function printRows({ title, rows }: Table): string {
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

export function printTable({ workloads }: Comparison): string {
  const head = ['', 'requests/s', 'p50 ms', 'p99 ms', 'CPU µs', 'to Dovetail'];
  const tables = workloads.map(({ title, results }) =>
    printRows({
      title,
      rows: [
        head,
        ...results.map((result) => [
          result.title,
          Math.round(result.requestsPerSecond).toLocaleString('en'),
          result.p50.toFixed(1),
          result.p99.toFixed(1),
          result.processorTime?.toFixed(0) ?? '-',
          result.ratio?.toFixed(2) ?? '-',
        ]),
      ],
    }),
  );
  return tables.join('\n');
}
