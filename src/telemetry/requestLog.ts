/** The one line that the log has of each request: nothing that a client wrote, nothing of a person. */

import type { Logger } from 'pino';
import type { Outcome } from '../http/exchange.ts';

export function logOutcome(logger: Logger, { exchange, status, duration }: Outcome): void {
  const { id, request, endpoint, operation, transport, errorCode, cache } = exchange;
  const line = {
    request: id,
    endpoint,
    method: request.method,
    ...(transport !== undefined && { transport }),
    operation,
    status,
    ...(errorCode !== undefined && { code: errorCode }),
    ms: Math.round(duration * 100) / 100,
    ...(cache !== undefined && logger.isLevelEnabled('debug') && { cache }),
  };
  if (status === undefined) logger.info(line, 'client left');
  else if (status >= 500) logger.warn(line, 'responded');
  else logger.info(line, 'responded');
}
