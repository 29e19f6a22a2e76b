/**
 * The log: lines of JSON on standard error, or readable lines if that is a terminal. They contain no personal data, and
 * errors are stripped of values that may be personal.
 */

import { type DestinationStream, type Logger, pino } from 'pino';
import { systemCodeOf } from '../errors.ts';
import { createLineWriter, type LineWriter } from './logBlocks.ts';
import { terminal } from './prettyLog.ts';

export function createLogger(level: string, destination: DestinationStream = standardError()): Logger {
  return pino({ level, serializers: { err: describeError } }, destination);
}

/** The destination of all loggers of the process that have none of their own. */
let lines: LineWriter | undefined;

function standardError(): DestinationStream {
  // The first use of `process.stderr` also makes a pipe or a socket non-blocking, as the line writer needs it.
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
 * Describes an error by what may be logged: its type, its code, its stack, and its message without values. Other properties
 * are left out: errors of the database carry the row at fault, and those of Prisma the arguments of the call.
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

/** The beginning of Prisma's messages: the call with its arguments, or the lines of source that made it. */
const preface = /^.*(?:\n→[^\n]*|invocation:)\n+/s;

/** Text in quotes. It is a value, unless the word before says that it is the name of something in the database. */
const quoted = /(\b(?:relation|table|column|constraint|index|type|enum|function) "[^"]*")|["'].*["']/gs;

function messageOf({ message }: Error): string {
  const safe = message.replace(preface, '').replace(quoted, (_, name = '…') => name);
  return safe.split('\n\n').at(-1) ?? '';
}
