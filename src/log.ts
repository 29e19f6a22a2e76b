/** The log: lines of JSON on standard error, or lines for a person where that is a terminal. */

import { type Logger, pino } from 'pino';
import type { Config } from './config.ts';
import { terminal } from './terminal.ts';

export function createLogger({ LOG_LEVEL }: Pick<Config, 'LOG_LEVEL'>): Logger {
  return pino({ level: LOG_LEVEL }, process.stderr.isTTY ? terminal : inBackground());
}

/** No request waits for its line; pino flushes the last ones at exit. */
const inBackground = () => pino.destination({ dest: 2, sync: false });
