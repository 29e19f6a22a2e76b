/** The log: lines of JSON on standard error. */

import { type Logger, pino } from 'pino';
import type { Config } from './config.ts';

/** Lines are written in the background, so that no request waits for its line; pino flushes the last ones at exit. */
export function createLogger({ LOG_LEVEL }: Pick<Config, 'LOG_LEVEL'>): Logger {
  return pino({ level: LOG_LEVEL }, pino.destination({ dest: 2, sync: false }));
}
