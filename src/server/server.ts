/** The HTTP server of a gateway: has the pipeline respond to each request, then compresses, sends and logs the response. */

import { setMaxListeners } from 'node:events';
import { createServer, type Server } from 'node:http';
import { requestSpans } from '../channels.ts';
import { longestConnecting } from '../database/session.ts';
import { formFor } from '../http/compression.ts';
import { timeouts as defaultTimeouts, watchConnections } from '../http/connections.ts';
import { createDeadlines, type Deadlines } from '../http/deadlines.ts';
import { errorResponse, httpErrors } from '../http/errorResponse.ts';
import { type Exchange, type ExchangeListener, openExchange } from '../http/exchange.ts';
import { type HttpResponse, type StreamedResponse, send, sendStream } from '../http/response.ts';
import { createUnderway, type Underway } from '../http/underway.ts';
import { endAfterIgnoredOffers, GatewayRequest } from '../http/upgrade.ts';
import { longestActivation } from '../mirror/activation.ts';
import { createRequestLog } from '../telemetry/requestLog.ts';
import type { ServerOptions } from './options.ts';
import { createPipeline } from './pipeline.ts';
import { createShedding } from './shedding.ts';
import { createOperations } from './transportOperations.ts';
import { createUpgrades } from './upgrades.ts';

export function createGatewayServer(options: ServerOptions): Server {
  const { config, logger, metrics, closing, timeouts = defaultTimeouts } = options;
  // Every stream listens to it: more listeners than Node expects are no leak here.
  setMaxListeners(0, closing);
  const underway = createUnderway();
  metrics?.watchRequests(underway);
  const deadlines = createRequestDeadlines(options);
  const listener = createListener(underway, deadlines, options);
  const pipeline = createPipeline(options, createShedding(options, deadlines));
  const sendResponse = createSender(options);
  const serve = async (exchange: Exchange) => sendResponse(exchange, await pipeline.respond(exchange));

  const handle = endAfterIgnoredOffers((request, response) => {
    const exchange = openExchange(request, response, listener);
    connections.begin(exchange);
    requestSpans.tracePromise(serve, { exchange }, undefined, exchange).catch((error: unknown) => {
      exchange.report(error);
      if (response.headersSent) response.destroy();
      else send(exchange, errorResponse(exchange.endpoint, httpErrors.internal));
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
  const connections = watchConnections(server, timeouts, closing);
  // A server may ignore expectations other than `100-continue` (RFC 9110, section 10.1.1).
  server.on('checkExpectation', handle);
  const upgrade = createUpgrades({
    cors: pipeline.cors,
    listener,
    logger,
    operations: createOperations(pipeline, listener, deadlines.end),
    connectionQuota: pipeline.connectionQuota,
    longestMessage: config.MAX_BODY_KB * 1024,
    closing,
  });
  server.on('upgrade', (request, socket, head) =>
    connections.detach(socket, () => upgrade(request, socket, head)),
  );
  return server;
}

/** Sends responses, compressed where the client and the settings allow it. */
function createSender({ config, closing }: ServerOptions) {
  const compresses = config.COMPRESSION === 'on';
  return async (exchange: Exchange, response: HttpResponse | StreamedResponse): Promise<void> => {
    if ('stream' in response) return sendStream(exchange, response, closing);
    const form = compresses ? formFor(exchange, response) : response;
    send(exchange, form instanceof Promise ? await form : form);
  };
}

function createListener(
  underway: Underway,
  deadlines: Deadlines,
  { logger, metrics }: ServerOptions,
): ExchangeListener {
  const log = createRequestLog(logger);
  return {
    began: underway.add,
    failed: ({ id }, error) => logger.error({ request: id, err: error }, 'request failed'),
    ended(outcome) {
      underway.remove(outcome.exchange);
      deadlines.end(outcome.exchange);
      log(outcome);
      metrics?.end(outcome);
    },
  };
}

/** Responds to a request that takes longer than any may, not counting the time in which the client sends it. */
function createRequestDeadlines({ config, mirror }: ServerOptions): Deadlines {
  const longest = config.STATEMENT_TIMEOUT * 1_000 + longestConnecting + (mirror ? longestActivation : 0);
  return createDeadlines(longest, (exchange) => {
    exchange.report(new Error(`there was no response after ${longest} ms`));
    const response = errorResponse(exchange.endpoint, httpErrors.internal);
    if (exchange.message) exchange.message.cutShort(response);
    else send(exchange, response);
  });
}
