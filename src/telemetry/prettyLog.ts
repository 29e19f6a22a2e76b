/** The log in a readable form, for terminals: a line for each entry, with the stack of an error below it. */

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

/** The default width of a terminal, in columns. */
const usualWidth = 80;

/** Writes entries to standard error, in colours unless NO_COLOR is set. */
export const terminal = {
  write(line: string): void {
    const { stderr } = process;
    const paint: Paint = (style, text) => styleText(style, text, { stream: stderr });
    stderr.write(readable(line, paint, Math.max(usualWidth, stderr.columns || 0)));
  },
};

type Paint = (style: Style, text: string) => string;

/**
 * @param line an entry, as pino writes it.
 * @param width how many columns a request may take.
 */
export function readable(line: string, paint: Paint, width = usualWidth): string {
  const { time, level, msg, pid, hostname, err, ...others } = JSON.parse(line);
  const clock = new Date(time).toTimeString().slice(0, 8);
  if (isRequest(others)) return requestLine({ ...others, clock }, paint, width);
  const [name, style] = levels[level] ?? [String(level), 'gray'];
  const words = [paint('gray', clock), paint(style, name.padEnd(5))];
  if (isStatement(others)) words.push(timeOf(others.ms), printable(others.sql));
  else {
    const details = Object.entries(others).map(([key, value]) => paint('gray', `${key}=${plain(value)}`));
    words.push(printable(msg ?? ''), ...details);
  }
  return `${words.join(' ')}\n${err ? error(err) : ''}`;
}

/** The entry of a request, as `requestLog` writes it. */
interface RequestEntry {
  readonly request: string;
  readonly endpoint: string;
  readonly method: string;
  readonly operation?: string;
  /** Absent if the client left before there was one. */
  readonly status?: number;
  readonly code?: string;
  readonly ms: number;
  readonly cache?: string;
}

const isRequest = (entry: object): entry is RequestEntry =>
  'request' in entry && 'endpoint' in entry && 'method' in entry && 'ms' in entry;

/** Whether it is the entry of a statement, as `statementLog` writes it. */
const isStatement = (entry: object): entry is { sql: string; ms: number } => 'sql' in entry && 'ms' in entry;

/** How many characters of a request's id are shown if the whole id does not fit. */
const shortId = 8;

/** Formats a request in one line. If there is too little room, the id is shortened first, then the operation. */
function requestLine(entry: RequestEntry & { clock: string }, paint: Paint, width: number): string {
  const { clock, method, endpoint, operation = '-', status, code, ms, cache, request } = entry;
  const outcome = [String(status ?? 'left'), ...(code === undefined ? [] : [code])].map(printable).join(' ');
  const before = [clock, method.padEnd(4), endpoint.padEnd(7)].map(printable).join(' ');
  const after = [timeOf(ms), ...(cache === undefined ? [] : [cache])].join(' ');
  const room = width - [before, outcome, after].join(' ').length - 2;
  // The name of a REST operation begins with the method, which is shown in a column of its own.
  const what = operation.startsWith(`${method} `) ? operation.slice(method.length + 1) : operation;
  const asked = cut(printable(what), room - shortId);
  const id = printable(request);
  const words = [
    paint('gray', before.slice(0, clock.length)) + before.slice(clock.length),
    asked,
    paint(styleOf(entry), outcome),
    after,
    paint('gray', id.length <= room - asked.length ? id : id.slice(0, shortId)),
  ];
  return `${words.join(' ')}\n`;
}

function styleOf({ status = 0, code }: RequestEntry): Style {
  if (status >= 500) return 'red';
  return status === 0 || status >= 400 || code !== undefined ? 'yellow' : 'green';
}

const cut = (text: string, room: number) =>
  text.length <= room ? text : `${text.slice(0, Math.max(0, room - 1))}…`;

/** A duration in milliseconds, rounded to about two digits. */
function timeOf(ms: number): string {
  if (ms >= 10_000) return `${Math.round(ms / 1_000)} s`;
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}

/** Formats an error: its type and message, its stack, and its causes. */
function error({ type, code, message, stack, cause }: DescribedError): string {
  const what = code === undefined ? type : `${type} ${code}`;
  const places = stack.split('\n').filter((line) => /^\s+at /.test(line));
  const lines = [`  ${printable(`${what}: ${message}`)}`, ...places.map(printable), ''].join('\n');
  return cause ? `${lines}  because of\n${error(cause)}` : lines;
}

/** A value as plain text if that is unambiguous, otherwise as JSON. */
function plain(value: unknown): string {
  return typeof value === 'string' && /^[\w.:/-]+$/.test(value) ? value : printable(JSON.stringify(value));
}

/** Replaces control characters, which a terminal would interpret: errors may quote anything. */
const printable = (text: string) => text.replace(/[^\P{C}\n]/gu, ' ');
