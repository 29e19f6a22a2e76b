/** Exchanges of a plain HTTP server, to test parts of the gateway one by one. */

import { createServer, IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { type Exchange, type ExchangeListener, type Outcome, openExchange } from '../../src/http/exchange.ts';
import { createLogger, createRequestLog } from '../../src/telemetry/log.ts';
import { listen, shut } from './listen.ts';

/** A listener that does nothing. */
export const nobodyListens: ExchangeListener = { failed() {}, ended() {} };

/** An exchange with the GraphQL API that no client has begun. */
export function newExchange(listener: Partial<ExchangeListener> = {}): Exchange {
  const request = Object.assign(new IncomingMessage(new Socket()), { method: 'GET', url: '/graphql' });
  return openExchange(request, new ServerResponse(request), { ...nobodyListens, ...listener });
}

export async function openExchanges(handle: (exchange: Exchange) => void) {
  const outcomes: Outcome[] = [];
  const lines: string[] = [];
  const logger = createLogger('info', { write: (line: string) => lines.push(line) });
  const log = createRequestLog(logger);
  const server = createServer((request, response) =>
    handle(
      openExchange(request, response, {
        ...nobodyListens,
        endpoints: new Map([['/own', { name: 'own', errorBody: (error) => ({ error }) }]]),
        failed: ({ id }, error) => logger.error({ request: id, err: error }, 'request failed'),
        ended(outcome) {
          outcomes.push(outcome);
          log(outcome);
        },
      }),
    ),
  );
  return {
    url: await listen(server),
    outcomes,
    /** The entries of the log. */
    log: (): Record<string, unknown>[] => lines.map((line) => JSON.parse(line)),
    close: () => shut(server),
  };
}
