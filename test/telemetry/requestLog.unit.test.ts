/** The log line of a request, compared with what pino writes for the same entry. */

import fc from 'fast-check';
import { pino } from 'pino';
import { expect, it, vi } from 'vitest';
import type { Exchange, Outcome } from '../../src/http/exchange.ts';
import { createRequestLog } from '../../src/telemetry/log.ts';

/** Texts with all characters that JSON escapes except lone surrogates, for which pino writes no valid JSON. */
const text = fc.string({
  unit: fc.constantFrom('a', '"', '\\', '/', '\n', '\u0001', '\u007f', 'é', '\u2028', '😀'),
});

const outcomes = fc.record({
  id: text,
  endpoint: fc.constantFrom('rest', 'graphql', 'page'),
  method: fc.constantFrom('GET', 'POST', 'OPTIONS', 'M-SEARCH'),
  transport: fc.constantFrom(undefined, 'websocket'),
  operation: fc.option(text, { nil: undefined }),
  errorCode: fc.option(text, { nil: undefined }),
  cache: fc.constantFrom(undefined, 'hit', 'miss'),
  status: fc.constantFrom(undefined, 200, 204, 304, 404, 499, 500, 503),
  duration: fc.double({ min: 0, max: 1e9, noNaN: true }),
});

it('the line of a request is what pino would write, at every level', () => {
  vi.spyOn(Date, 'now').mockReturnValue(1_763_780_000_123);
  for (const level of ['trace', 'debug', 'info', 'warn', 'error', 'silent']) {
    const lines: string[] = [];
    const logger = pino({ level }, { write: (line: string) => lines.push(line) });
    const log = createRequestLog(logger);
    fc.assert(
      fc.property(outcomes, ({ method, status, duration, ...exchange }) => {
        lines.length = 0;
        // The parts of an exchange that the log reads.
        const outcome = {
          exchange: { ...exchange, request: { method } } as unknown as Exchange,
          status,
          duration,
        };
        log(outcome satisfies Outcome);
        logByPino(outcome);
        const [own, expected] = lines;
        expect(lines.length).toBe(own === undefined ? 0 : 2);
        expect(own).toBe(expected);
        expect(own === undefined).toBe(
          !logger.isLevelEnabled(status !== undefined && status >= 500 ? 'warn' : 'info'),
        );
      }),
    );

    function logByPino({ exchange, status, duration }: Outcome): void {
      const { id, request, endpoint, operation, transport, errorCode, cache } = exchange;
      const entry = {
        request: id,
        endpoint,
        method: request.method,
        transport,
        operation,
        status,
        code: errorCode,
        ms: Math.round(duration * 100) / 100,
        ...(logger.isLevelEnabled('debug') && { cache }),
      };
      if (status === undefined) logger.info(entry, 'client left');
      else if (status >= 500) logger.warn(entry, 'responded');
      else logger.info(entry, 'responded');
    }
  }
});
