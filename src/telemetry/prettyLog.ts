/** The log as a person reads it on a terminal: a line for each entry, and below it the stack of an error. */

import { styleText } from 'node:util';
import type { DescribedError } from './log.ts';

type Style = Parameters<typeof styleText>[0];

const levels: Readonly<Record<number, readonly [name: string, style: Style]>> = {
  10: ['trace', 'gray'],
  20: ['debug', 'gray'],
  30: ['info', 'green'],
  40: ['warn', 'yellow'],
  50: ['error', 'red'],
  60: ['fatal', 'red'],
};

/** Writes entries to standard error, in colours unless NO_COLOR says otherwise. */
export const terminal = {
  write(line: string): void {
    process.stderr.write(readable(line, (style, text) => styleText(style, text, { stream: process.stderr })));
  },
};

/** @param line an entry, as pino writes it. */
export function readable(line: string, paint: (style: Style, text: string) => string): string {
  const { time, level, msg, pid, hostname, err, ...others } = JSON.parse(line);
  const [name, style] = levels[level] ?? [String(level), 'gray'];
  const clock = new Date(time).toTimeString().slice(0, 8);
  const details = Object.entries(others).map(([key, value]) => paint('gray', `${key}=${plain(value)}`));
  const words = [paint('gray', clock), paint(style, name.padEnd(5)), printable(msg ?? ''), ...details];
  return `${words.join(' ')}\n${err ? error(err) : ''}`;
}

/** What an error is, what it says, where it happened, and what led to it. */
function error({ type, code, message, stack, cause }: DescribedError): string {
  const what = code === undefined ? type : `${type} ${code}`;
  const places = stack.split('\n').filter((line) => /^\s+at /.test(line));
  const lines = [`  ${printable(`${what}: ${message}`)}`, ...places.map(printable), ''].join('\n');
  return cause ? `${lines}  because of\n${error(cause)}` : lines;
}

/** A value as it is where that can be told from its neighbours, and as JSON where not. */
function plain(value: unknown): string {
  return typeof value === 'string' && /^[\w.:/-]+$/.test(value) ? value : printable(JSON.stringify(value));
}

/** Without what a terminal would obey: an error may quote anything. */
const printable = (text: string) => text.replace(/[^\P{C}\n]/gu, ' ');
