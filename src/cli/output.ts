/** What commands print: data to standard output, words to standard error. */

import { errorText } from '../errors.ts';

/** Prints a line for people. */
export function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value, null, 2)}\n`);
}

/** Prints the rows below their titles, in aligned columns. */
export function printTable(titles: readonly string[], rows: readonly (readonly string[])[]): void {
  // Names may have any characters. Control characters would break lines, or command the terminal.
  const lines = [titles, ...rows].map((cells) => cells.map((cell) => cell.replace(/\p{C}/gu, ' ')));
  const widths = titles.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  for (const line of lines) {
    const cells = line.map((cell, column) => cell.padEnd(widths[column] ?? 0));
    process.stdout.write(`${cells.join('  ').trimEnd()}\n`);
  }
}

/** Handles errors of the output streams: without a listener, such an error would end the process as an exception. */
export function handleOutputErrors(): void {
  // Added once, even if a test runs several commands.
  process.stdout.off('error', reportFailure).on('error', reportFailure);
  process.stderr.off('error', ignore).on('error', ignore);
}

function reportFailure(error: NodeJS.ErrnoException): void {
  // A reader that closes the pipe, such as `head`, has read what it wanted.
  if (error.code === 'EPIPE') return;
  say(`Standard output cannot be written: ${errorText(error)}`);
  process.exitCode = 1;
}

/** Nothing can be reported when standard error fails. */
function ignore(): void {}
