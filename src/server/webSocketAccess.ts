/** Accepts WebSockets. The pipeline runs their operations as if each were a request. */

import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { requestSpans } from '../channels.ts';
import { type Config, publicAddressOf } from '../config/config.ts';
import type { PipelineAccess } from '../graphql/transports/webSockets.ts';
import { responseOn } from '../http/connections.ts';
import { errorResponse, failureResponse } from '../http/errorResponse.ts';
import {
  type Exchange,
  type ExchangeListener,
  endExchange,
  openExchange,
  openMessage,
} from '../http/exchange.ts';
import { ambiguityOf } from '../http/request.ts';
import { type HttpResponse, isResponse, type StreamedResponse } from '../http/response.ts';
import { send } from '../http/send.ts';
import type { ServerOptions } from './options.ts';
import type { Pipeline } from './pipeline.ts';

/** @param responded called with each operation that has its response: a subscription has no deadline after that. */
export function createOperations(
  { respond, authorize, watchToken }: Pick<Pipeline, 'respond' | 'authorize' | 'watchToken'>,
  listener: ExchangeListener,
  responded: (exchange: Exchange) => void,
): PipelineAccess {
  // Messages that were read with this one are handled first: one of them may stop the operation.
  async function respondInTurn(exchange: Exchange) {
    await setImmediate();
    return respond(exchange);
  }

  return {
    watchToken,

    run(opening, { content, ...incoming }) {
      let cutShort = (_: HttpResponse) => {};
      const cut = new Promise<HttpResponse>((settle) => {
        cutShort = settle;
      });
      const exchange = openMessage(opening, { ...incoming, message: { content, cutShort } }, listener);
      const running = requestSpans
        .tracePromise(respondInTurn, { exchange }, undefined, exchange)
        .catch((error: unknown) => failureResponse(exchange, error));
      const response = Promise.race([cut, running]).finally(() => responded(exchange));
      // A response that comes too late is not read.
      response.then((given) => running.then((late) => late !== given && discard(late))).catch(() => {});
      return { exchange, response };
    },

    async identify(opening, incoming) {
      const message = { content: undefined, cutShort() {} };
      const exchange = openMessage(opening, { ...incoming, message }, listener);
      exchange.operation = 'connection_init';
      const authorizing = (async () => authorize(exchange))();
      const access = await authorizing.catch((error: unknown) => failureResponse(exchange, error));
      endExchange(exchange, isResponse(access) ? access.status : access.viewer ? 200 : 401);
      return access;
    },
  };
}

function discard(response: HttpResponse | StreamedResponse): void {
  if (!('stream' in response)) return;
  response.stream.cancel().catch(() => {});
  response.ended();
}

/** Makes a function that handles the `upgrade` event of a server. */
export function createUpgrades(
  { config, logger, closing }: ServerOptions,
  { cors, connectionQuota }: Pick<Pipeline, 'cors' | 'connectionQuota'>,
  operations: PipelineAccess,
  listener: ExchangeListener,
) {
  /** Loaded with the first WebSocket. */
  async function load() {
    const { createWebSockets } = await import('../graphql/transports/webSockets.ts');
    const longestMessage = config.MAX_BODY_KB * 1024;
    return createWebSockets({ operations, connectionQuota, longestMessage, closing });
  }
  let loading: ReturnType<typeof load> | undefined;

  async function accept(exchange: Exchange, socket: Duplex, head: Buffer): Promise<void> {
    const error = findUpgradeError(exchange, config) ?? cors.rejectPage(exchange, true);
    if (error) return send(exchange, error);
    exchange.operation = 'websocket';
    exchange.transport = 'websocket';
    loading ??= load();
    (await loading).accept(exchange, socket, head);
  }

  return (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    const exchange = openExchange(request, responseOn(request, socket), listener);
    accept(exchange, socket, head).catch((error: unknown) => {
      // Ends the connection, rather than the process.
      logger.error({ request: exchange.id, err: error }, 'upgrade failed');
      socket.destroy();
    });
  };
}

const protocol = 'graphql-transport-ws';

/** RFC 6455, section 4.2.1: 16 bytes in base64. */
const usableKey = /^[+/\w]{22}==$/;

/** The response to a request that does not become a WebSocket, undefined for one that does. */
function findUpgradeError({ request, endpoint }: Exchange, config: Config): HttpResponse | undefined {
  const { headers } = request;
  const fail = (message: string) =>
    errorResponse(endpoint, { code: 'BAD_USER_INPUT', message }, { Connection: 'close' });
  const required = (message: string, others: Record<string, string> = {}) =>
    // A 426 has to name the protocol that is supported (RFC 9110, section 15.5.22).
    errorResponse(
      endpoint,
      { status: 426, code: 'BAD_USER_INPUT', message },
      { Upgrade: 'websocket', Connection: 'Upgrade, close', ...others },
    );

  const ambiguity = ambiguityOf(request);
  if (ambiguity !== undefined) return fail(ambiguity);
  if (endpoint !== 'graphql')
    return required(`WebSockets are opened at ${publicAddressOf(config, '/graphql')}, and nowhere else`);
  if (headers.upgrade?.trim().toLowerCase() !== 'websocket')
    return required('Upgrade must name websocket, and no other protocol beside it');
  if (headers['sec-websocket-version'] !== '13')
    return required('The version of the WebSocket protocol is 13', { 'Sec-WebSocket-Version': '13' });
  if (!usableKey.test(headers['sec-websocket-key'] ?? ''))
    return fail('Sec-WebSocket-Key must be 16 bytes in base64');
  const offered = headers['sec-websocket-protocol']?.split(',').map((name) => name.trim());
  if (offered && !offered.includes(protocol))
    return required(
      `The subprotocol of WebSockets is ${protocol}: not the older graphql-ws of subscriptions-transport-ws, nor any other`,
      { 'Sec-WebSocket-Protocol': protocol },
    );
  return undefined;
}
