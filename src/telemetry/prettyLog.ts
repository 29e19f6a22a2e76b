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

/** As wide as a terminal is unless somebody drew it larger. */
const usualWidth = 80;

/** Writes entries to standard error, in colours unless NO_COLOR says otherwise. */
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

/** A request that is over, as `requestLog` writes it. */
interface RequestEntry {
  readonly request: string;
  readonly endpoint: string;
  readonly method: string;
  readonly operation?: string;
  /** None for a client that left before there was one. */
  readonly status?: number;
  readonly code?: string;
  readonly ms: number;
  readonly cache?: string;
}

const isRequest = (entry: object): entry is RequestEntry =>
  'request' in entry && 'endpoint' in entry && 'method' in entry && 'ms' in entry;

/** A statement, as `statementLog` writes it. */
const isStatement = (entry: object): entry is { sql: string; ms: number } => 'sql' in entry && 'ms' in entry;

/** How much of a request's id is there where it does not fit: as much as it takes to find it among the others. */
const shortId = 8;

/** A request in one line, whatever it was: where there is no room, the id is cut to its beginning, then what was asked. */
function requestLine(entry: RequestEntry & { clock: string }, paint: Paint, width: number): string {
  const { clock, method, endpoint, operation = '-', status, code, ms, cache, request } = entry;
  const outcome = [String(status ?? 'left'), ...(code === undefined ? [] : [code])].map(printable).join(' ');
  const before = [clock, method.padEnd(4), endpoint.padEnd(7)].map(printable).join(' ');
  const after = [timeOf(ms), ...(cache === undefined ? [] : [cache])].join(' ');
  const room = width - [before, outcome, after].join(' ').length - 2;
  // The method of a route stands before it already.
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

/** A time in milliseconds, with as many digits as say something. */
function timeOf(ms: number): string {
  if (ms >= 10_000) return `${Math.round(ms / 1_000)} s`;
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
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
