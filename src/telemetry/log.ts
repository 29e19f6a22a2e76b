/**
 * The log: lines of JSON on standard error, or readable lines if that is a terminal. There is one for each request. Lines contain
 * no personal data and no text of clients, and errors are stripped of values that may be personal. To replace it: use any logger with
 * pino's interface.
 */

import { type DestinationStream, type Logger, pino } from 'pino';
import { systemCodeOf } from '../errors.ts';
import { nameOfEndpoint, type Outcome } from '../http/exchange.ts';

export function createLogger(level: string, destination: DestinationStream): Logger {
  return pino({ level, serializers: { err: describeError } }, destination);
}

/** The destination of all loggers of the process that have none of their own. */
let standard: DestinationStream | undefined;

export async function standardError(): Promise<DestinationStream> {
  standard ??= process.stderr.isTTY ? await openTerminal() : openBlocks();
  return standard;
}

/** In bytes. Writes of at most this many to a pipe are not mixed with those of other processes (`PIPE_BUF`). */
const blockSize = 4_096;

/** How long, in milliseconds, a line may wait for its block to be filled. */
const flushDelay = 100;

/** How many bytes may wait for a slow reader or a full disk. Further lines are dropped. */
const mostWaiting = 1024 * 1024;

/** Lines are written in blocks: a write for each would cost a cached response more than a tenth of its processor time. */
function openBlocks(): DestinationStream {
  // The first use of `process.stderr` makes a pipe non-blocking.
  const { fd } = process.stderr;
  const blocks = pino.destination({
    fd,
    sync: true,
    minLength: blockSize / 2,
    maxWrite: blockSize,
    maxLength: mostWaiting,
    periodicFlush: flushDelay,
    // A slow reader must not stop the process: the next flush tries again.
    retryEAGAIN: () => false,
  });
  blocks.on('error', () => {});
  process.on('exit', () => {
    try {
      blocks.flushSync();
    } catch {
      // The reader is too slow, or gone.
    }
  });
  return blocks;
}

/** A line for each entry, with the stack of an error below it. Loaded only where there is a terminal. */
async function openTerminal(): Promise<DestinationStream> {
  const { prettyFactory } = await import('pino-pretty');
  const { stderr } = process;
  const readable = prettyFactory({
    colorize: stderr.hasColors(),
    translateTime: 'SYS:HH:MM:ss',
    singleLine: true,
    // The subject of an entry comes first.
    messageFormat: ({ msg, operation, status, code, ms }) =>
      [msg, operation, status, code, ms === undefined ? undefined : `${ms} ms`]
        .filter((part) => part !== undefined)
        .join(' ')
        .replace(controls, ' '),
    ignore: 'pid,hostname,operation,status,code,ms',
  });
  // JSON escapes the other control characters.
  return { write: (line) => void stderr.write(readable(line.trimEnd().replace(controls, ' '))) };
}

/** A terminal would interpret them, and errors may quote anything. */
const controls = /\p{Cc}/gu;

/** How many causes of causes are described. */
const maxCauses = 3;

/**
 * Describes an error by what may be logged: its type, its code, its stack, and its message without values. Other properties
 * are left out: errors of the database carry the row at fault.
 */
export function describeError(error: unknown, depth = 0): Record<string, unknown> {
  if (!(error instanceof Error)) return { type: typeof error, message: '', stack: '' };
  const { name, message, stack = '', cause } = error;
  // JSON leaves out what is undefined.
  return {
    type: name === 'error' ? error.constructor.name : name,
    code: systemCodeOf(error),
    message: message.replace(quoted, (_, kept = '…') => kept),
    stack: (stack.match(/^\s+at .*$/gm) ?? []).join('\n'),
    cause: cause instanceof Error && depth < maxCauses ? describeError(cause, depth + 1) : undefined,
  };
}

/** Text in quotes. It is a value, unless the word before says that it is the name of something in the database. */
const quoted = /(\b(?:relation|table|column|constraint|index|type|enum|function) "[^"]*")|["'].*["']/gs;

/** Makes a function that logs a request that is over. */
export function createRequestLog(logger: Logger): (outcome: Outcome) => void {
  const tellsCache = logger.isLevelEnabled('debug');
  return ({ exchange, status, duration }) => {
    const { id, request, endpoint, operation, transport, errorCode, cache } = exchange;
    const level = status !== undefined && status >= 500 ? 'warn' : 'info';
    logger[level](
      {
        request: id,
        endpoint: nameOfEndpoint(endpoint),
        method: request.method,
        transport,
        operation,
        status,
        code: errorCode,
        ms: inMilliseconds(duration),
        cache: tellsCache ? cache : undefined,
      },
      status === undefined ? 'client left' : 'responded',
    );
  };
}

const inMilliseconds = (duration: number) => Math.round(duration * 100) / 100;
