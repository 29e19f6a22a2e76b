/** The HTTP server of a gateway. The pipeline responds to each request; this file compresses, sends and logs the response. */

import { setMaxListeners } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { Logger } from 'pino';
import { requestSpans } from '../channels.ts';
import { isAway } from '../database/connectionError.ts';
import { longestConnecting } from '../database/session.ts';
import type { RunInTurn } from '../database/turns.ts';
import { errorText, unserved } from '../errors.ts';
import {
  timeouts as defaultTimeouts,
  endAfterIgnoredOffers,
  GatewayRequest,
  mostConnections,
  watchConnections,
} from '../http/connections.ts';
import { errorResponse, failureResponse, httpErrors } from '../http/errorResponse.ts';
import {
  createDeadlines,
  type Deadlines,
  type Exchange,
  type ExchangeListener,
  openExchange,
} from '../http/exchange.ts';
import { formFor, send, sendStream } from '../http/response.ts';
import { longestActivation } from '../mirror/activation.ts';
import { createRequestLog } from '../telemetry/log.ts';
import type { ServerOptions } from './options.ts';
import { createPipeline } from './pipeline.ts';
import { createOperations, createUpgrades } from './webSocketAccess.ts';

export function createGatewayServer(options: ServerOptions): Server {
  const { config, logger, closing, timeouts = defaultTimeouts } = options;
  // Each stream adds a listener, so many listeners are no leak here.
  setMaxListeners(0, closing);
  const deadlines = createRequestDeadlines(options);
  const listener = createListener(options, deadlines);
  const pipeline = createPipeline(options, deadlines, watchOutages(logger));

  async function serve(exchange: Exchange): Promise<void> {
    const response = await pipeline.respond(exchange);
    if ('stream' in response) return sendStream(exchange, response);
    const form = config.COMPRESSION === 'on' ? formFor(exchange, response) : response;
    send(exchange, form instanceof Promise ? await form : form);
  }

  const handle = endAfterIgnoredOffers((request, response) => {
    const exchange = openExchange(request, response, listener);
    connections.begin(exchange);
    requestSpans.tracePromise(serve, { exchange }, undefined, exchange).catch((error: unknown) => {
      const failure = failureResponse(exchange, error);
      if (response.headersSent) response.destroy();
      else send(exchange, failure);
    });
  });
  const server = createServer(
    {
      IncomingMessage: GatewayRequest,
      // TCP probes find clients that left without closing the connection, such as the readers of idle streams.
      keepAlive: true,
      keepAliveInitialDelay: 30_000,
      // The pipeline checks the Host header, with an error response of our own.
      requireHostHeader: false,
      connectionsCheckingInterval: Math.min(timeouts.head, 1_000),
    },
    handle,
  );
  const { DATABASE_CONNECTIONS, DATABASE_REPLICA_URLS = [] } = config;
  const own = DATABASE_CONNECTIONS * (1 + DATABASE_REPLICA_URLS.length);
  server.maxConnections = options.maxConnections ?? mostConnections(own);
  const connections = watchConnections(server, timeouts, closing);
  // A server may ignore expectations other than `100-continue` (RFC 9110, section 10.1.1).
  server.on('checkExpectation', handle);
  const operations = createOperations(pipeline, listener, deadlines.end);
  const upgrade = createUpgrades(options, pipeline, operations, listener);
  server.on('upgrade', (request, socket, head) =>
    connections.detach(socket, () => upgrade(request, socket, head)),
  );
  return server;
}

function createListener({ logger, metrics }: ServerOptions, deadlines: Deadlines): ExchangeListener {
  const log = createRequestLog(logger);
  return {
    began: (exchange) => metrics?.begin(exchange),
    failed: ({ id }, error) => logger.error({ request: id, err: error }, 'request failed'),
    ended(outcome) {
      deadlines.end(outcome.exchange);
      log(outcome);
      metrics?.end(outcome);
    },
  };
}

/** Responds with an error to a request that exceeds its deadline. The time in which the client sends it does not count. */
function createRequestDeadlines({ config, mirror }: ServerOptions): Deadlines {
  const longest = config.STATEMENT_TIMEOUT * 1_000 + longestConnecting + (mirror ? longestActivation : 0);
  return createDeadlines(longest, (exchange) => {
    exchange.report(new Error(`there was no response after ${longest} ms`));
    const response = errorResponse(exchange.endpoint, httpErrors.internal);
    if (exchange.message) exchange.message.cutShort(response);
    else send(exchange, response);
  });
}

/**
 * Runs statements. Logs one line when the database goes away, and one when it is back, however many requests fail in between. The
 * error of a statement tells the client that the database is away.
 */
function watchOutages(logger: Logger): RunInTurn {
  let outage: object | undefined;
  return async (statement) => {
    const before = outage;
    try {
      const result = await statement();
      // A statement that began earlier says nothing.
      if (outage && outage === before) {
        logger.info('the database is back');
        outage = undefined;
      }
      return result;
    } catch (error) {
      if (!isAway(error)) throw error;
      if (!outage)
        logger.error({ why: errorText(error) }, 'the database is away: requests that need it get a 503');
      outage ??= {};
      throw unserved('databaseAway');
    }
  };
}
