/**
 * The log: lines of JSON on standard error, or lines for a person where that is a terminal. Nothing of a person is in
 * them, whatever an error has to say.
 */

import { type DestinationStream, type Logger, pino } from 'pino';
import { systemCodeOf } from '../errors.ts';
import { createLineWriter, type LineWriter } from './logBlocks.ts';
import { terminal } from './prettyLog.ts';

export function createLogger(level: string, destination: DestinationStream = standardError()): Logger {
  return pino({ level, serializers: { err: describeError } }, destination);
}

/** What all loggers of the process write to that have no destination of their own. */
let lines: LineWriter | undefined;

function standardError(): DestinationStream {
  // Node makes its stream the first time that it is asked for, and a pipe or a socket then no longer has writers wait.
  if (process.stderr.isTTY) return terminal;
  lines ??= createLineWriter(2);
  return lines;
}

/** An error as it stands in the log. */
export interface DescribedError {
  readonly type: string;
  readonly code?: string;
  readonly message: string;
  readonly stack: string;
  readonly cause?: DescribedError;
}

/** How many causes of causes are described. */
const maxCauses = 3;

/**
 * What an error may tell: its kind, its code, where it happened, and its message without the values in it. Databases
 * add more, such as the row that was at fault, and what Prisma was called with.
 */
export function describeError(error: unknown, depth = 0): DescribedError {
  if (!(error instanceof Error)) return { type: typeof error, message: '', stack: '' };
  const code = systemCodeOf(error);
  const cause =
    error.cause instanceof Error && depth < maxCauses ? describeError(error.cause, depth + 1) : undefined;
  return {
    type: error.name === 'error' ? error.constructor.name : error.name,
    ...(code !== undefined && { code }),
    message: messageOf(error),
    stack: (error.stack ?? '')
      .split('\n')
      .filter((line) => /^\s+at /.test(line))
      .join('\n'),
    ...(cause && { cause }),
  };
}

/** What Prisma's messages begin with: what was called with what, or the lines of source that called it. */
const preface = /^.*(?:\n→[^\n]*|invocation:)\n+/s;

/** What stands in quotes is a value, unless the word before says that it is a name. */
const quoted = /(\b(?:relation|table|column|constraint|index|type|enum|function) "[^"]*")|["'].*["']/gs;

function messageOf({ message }: Error): string {
  const safe = message.replace(preface, '').replace(quoted, (_, name = '…') => name);
  return safe.split('\n\n').at(-1) ?? '';
}
