/** What the pipeline does about more load than can be borne: has requests wait, and turns them away. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import { createConcurrency } from '../database/concurrency.ts';
import { addressOf } from '../http/clientAddress.ts';
import type { Deadlines } from '../http/deadlines.ts';
import { createEarlyShedder } from '../http/earlyShedding.ts';
import type { Exchange } from '../http/exchange.ts';
import { createLoadShedder } from '../http/loadShedding.ts';
import { createStatementTurns, type StatementTurns } from '../http/statementTurns.ts';
import type { Shed } from './authentication.ts';
import type { ServerOptions } from './options.ts';

export interface Shedding {
  readonly shed: Shed;
  /** Lets users take turns with their statements. */
  readonly statements: StatementTurns;
  /** Sends the 503 if there is no time for a request, by what is known of its connection; returns whether it has. */
  rejectEarly(request: IncomingMessage, response: ServerResponse, last: Exchange | undefined): boolean;
}

export function createShedding(
  { config, database, metrics, logger, closing, longestWait }: ServerOptions,
  deadlines: Deadlines,
): Shedding {
  const concurrency = createConcurrency(database.pool);
  const statements = createStatementTurns(concurrency);
  const shedder = createLoadShedder({
    concurrency,
    statements,
    maxWaiting: config.MAX_WAITING,
    longestWait,
    begun: deadlines.begin,
  });
  metrics?.watchLoad(shedder.figures);
  const log = createSummary(logger, closing);
  const early = createEarlyShedder({
    shedder,
    onRejected(endpoint) {
      log();
      metrics?.rejected(endpoint);
    },
  });
  return {
    statements,
    shed: (exchange, viewer, size) =>
      shedder.shed(exchange, () => viewer?.id ?? addressOf(exchange.request, config.TRUST_PROXY), size),
    rejectEarly: early.rejectEarly,
  };
}

/** How long, in milliseconds, one line of the log counts. */
const counted = 1_000;

/** What counts requests that have no line of their own, of which there are too many. */
function createSummary(logger: Logger, closing: AbortSignal): () => void {
  let count = 0;

  function tell(): void {
    if (count > 0) logger.warn({ count }, 'turned requests away');
    count = 0;
  }

  closing.addEventListener('abort', tell);
  return () => {
    if (count === 0) setTimeout(tell, counted).unref();
    count++;
  };
}
