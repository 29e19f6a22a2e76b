/** The log: lines of JSON on standard error, or lines for a person where that is a terminal. */

import { type DestinationStream, type Logger, pino } from 'pino';
import { terminal } from './terminal.ts';

export function createLogger(level: string, destination: DestinationStream = standardError()): Logger {
  return pino({ level }, destination);
}

/** Written in the background but for a person: no request waits for its line, and pino flushes the last ones. */
function standardError(): DestinationStream {
  return process.stderr.isTTY ? terminal : pino.destination({ dest: 2, sync: false });
}
