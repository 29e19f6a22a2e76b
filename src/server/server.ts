/** The HTTP server of a gateway. The pipeline responds to each request; this file compresses, sends and logs the response. */

import { setMaxListeners } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { Logger } from 'pino';
import { requestSpans } from '../channels.ts';
import { isAway } from '../database/connection.ts';
import { longestConnecting } from '../database/session.ts';
import { errorText, unserved } from '../errors.ts';
import {
  createRequestClass,
  timeouts as defaultTimeouts,
  endAfterIgnoredOffers,
  mostConnections,
  responseOn,
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
import { formFor, send, sendStream } from '../http/send.ts';
import { createRequestLog } from '../telemetry/log.ts';
import { createPipeline, type Fail, type ServerOptions } from './pipeline.ts';

export function createGatewayServer(options: ServerOptions): Server {
  const { config, logger, closing, hooks, timeouts = defaultTimeouts } = options;
  // Each stream adds a listener, so many listeners are no leak here.
  setMaxListeners(0, closing);
  const deadlines = createRequestDeadlines(options);
  const listener = createListener(options, deadlines);
  const pipeline = createPipeline(options, deadlines, createFail(logger));

  async function serve(exchange: Exchange): Promise<void> {
    const waiting = connections.begin(exchange);
    if (waiting) await waiting;
    const response = await pipeline.respond(exchange);
    if ('stream' in response) return sendStream(exchange, response);
    const form = config.COMPRESSION === 'on' ? formFor(exchange, response) : response;
    send(exchange, form instanceof Promise ? await form : form);
  }

  const handle = endAfterIgnoredOffers((request, response) => {
    const exchange = openExchange(request, response, listener);
    requestSpans.tracePromise(serve, { exchange }, undefined, exchange).catch((error: unknown) => {
      const failure = failureResponse(exchange, error);
      if (response.headersSent) response.destroy();
      else send(exchange, failure);
    });
  });
  const server = createServer(
    {
      IncomingMessage: createRequestClass(hooks.upgrades?.accepts ?? (() => false)),
      // TCP probes find clients that left without closing the connection, such as the readers of idle streams.
      keepAlive: true,
      keepAliveInitialDelay: 30_000,
      // The pipeline checks the Host header, with an error response of our own.
      requireHostHeader: false,
      connectionsCheckingInterval: Math.min(timeouts.head, 1_000),
    },
    handle,
  );
  const own = config.DATABASE_CONNECTIONS + (hooks.connections ?? 0);
  server.maxConnections = options.maxConnections ?? mostConnections(own);
  const connections = watchConnections(server, timeouts, closing, config.TRUST_PROXY);
  // A server may ignore expectations other than `100-continue` (RFC 9110, section 10.1.1).
  server.on('checkExpectation', handle);
  const upgrade = hooks.upgrades?.createHandler({
    ...pipeline,
    listener,
    closing,
    responded: deadlines.end,
  });
  if (!upgrade) return server;
  server.on('upgrade', (request, socket, head) =>
    connections.detach(socket, () => {
      const exchange = openExchange(request, responseOn(request, socket), listener);
      void connections.begin(exchange);
      upgrade(exchange, socket, head).catch((error: unknown) => {
        // Ends the connection, rather than the process.
        logger.error({ request: exchange.id, err: error }, 'upgrade failed');
        socket.destroy();
      });
    }),
  );
  return server;
}

function createListener({ logger, hooks }: ServerOptions, deadlines: Deadlines): ExchangeListener {
  const log = createRequestLog(logger);
  return {
    endpoints: new Map(hooks.endpoints.map((endpoint) => [endpoint.path, endpoint])),
    began: hooks.began,
    failed: ({ id }, error) => logger.error({ request: id, err: error }, 'request failed'),
    ended(outcome) {
      deadlines.end(outcome.exchange);
      log(outcome);
      hooks.ended?.(outcome);
    },
  };
}

/** Responds with an error to a request that exceeds its deadline. The time in which the client sends it does not count. */
function createRequestDeadlines({ config, hooks }: ServerOptions): Deadlines {
  const longest = config.STATEMENT_TIMEOUT * 1_000 + longestConnecting + (hooks.longest ?? 0);
  return createDeadlines(longest, (exchange) => {
    exchange.report(new Error(`there was no response after ${longest} ms`));
    const response = errorResponse(exchange.endpoint, httpErrors.internal);
    if (exchange.message) exchange.message.cutShort(response);
    else send(exchange, response);
  });
}

/** The pause, in milliseconds, between two log lines that the database is away, however many requests fail in between. */
const pauseBetweenReasons = 60_000;

function createFail(logger: Logger): Fail {
  let logged = Number.NEGATIVE_INFINITY;
  return (error) => {
    if (!isAway(error)) throw error;
    const now = performance.now();
    if (now - logged > pauseBetweenReasons) {
      logged = now;
      logger.error({ why: errorText(error) }, 'the database is away: requests that need it get a 503');
    }
    throw unserved('databaseAway');
  };
}
