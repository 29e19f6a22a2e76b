/** Takes requests for WebSockets. What speaks their protocol is loaded with the first of them. */

import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Logger } from 'pino';
import type { WebSockets, WebSocketsOptions } from '../graphql/transports/webSockets.ts';
import type { Cors } from '../http/cors.ts';
import { errorResponse, type HttpError, httpErrors } from '../http/errorResponse.ts';
import { type Exchange, type ExchangeListener, openExchange } from '../http/exchange.ts';
import { isMisaddressed } from '../http/requestChecks.ts';
import { type HttpResponse, send } from '../http/response.ts';
import { responseOn } from '../http/upgrade.ts';

export interface UpgradesOptions extends WebSocketsOptions {
  readonly cors: Cors;
  readonly listener: ExchangeListener;
  readonly logger: Logger;
}

/** Handles the `upgrade` event of a server. */
export type Upgrades = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

export function createUpgrades({ cors, listener, logger, ...options }: UpgradesOptions): Upgrades {
  let loading: Promise<WebSockets> | undefined;

  async function load(): Promise<WebSockets> {
    const { createWebSockets } = await import('../graphql/transports/webSockets.ts');
    return createWebSockets(options);
  }

  function findError(exchange: Exchange): HttpResponse | undefined {
    if (isMisaddressed(exchange.request))
      return errorResponse(exchange.endpoint, httpErrors.badRequest, { Connection: 'close' });
    return findUpgradeError(exchange) ?? cors.rejectSocket(exchange);
  }

  const take: Upgrades = (request, socket, head) => {
    const exchange = openExchange(request, responseOn(request, socket), listener);
    const error = findError(exchange);
    if (error) return send(exchange, error);
    exchange.operation = 'websocket';
    exchange.transport = 'websocket';
    loading ??= load();
    loading
      .then((webSockets) => webSockets.accept(exchange, socket, head))
      .catch((failure: unknown) => {
        exchange.report(failure);
        socket.destroy();
      });
  };

  return (request, socket, head) => {
    try {
      take(request, socket, head);
    } catch (error) {
      // Nobody else would catch it: one connection ends, and not the process.
      logger.error({ err: error }, 'upgrade failed');
      socket.destroy();
    }
  };
}

const protocol = 'graphql-transport-ws';

/** RFC 6455, section 4.2.1: 16 bytes in base64. */
const usableKey = /^[+/\w]{22}==$/;

/** The response to a request that does not become a WebSocket, undefined for one that does. */
function findUpgradeError({ request, endpoint }: Exchange): HttpResponse | undefined {
  const { headers } = request;
  const fail = (error: HttpError, others: Record<string, string> = {}) =>
    errorResponse(endpoint, error, { Connection: 'close', ...others });
  const required = (message: string, others: Record<string, string> = {}) =>
    // A 426 has to name the protocol that is supported (RFC 9110, section 15.5.22).
    fail(
      { status: 426, code: 'BAD_USER_INPUT', message },
      { Upgrade: 'websocket', Connection: 'Upgrade, close', ...others },
    );

  if (endpoint !== 'graphql') return required('WebSockets are opened at /graphql, and nowhere else');
  if (headers.upgrade?.trim().toLowerCase() !== 'websocket')
    return required('Upgrade must name websocket, and no other protocol beside it');
  if (headers['sec-websocket-version'] !== '13')
    return required('The version of the WebSocket protocol is 13', { 'Sec-WebSocket-Version': '13' });
  if (!usableKey.test(headers['sec-websocket-key'] ?? ''))
    return fail({ code: 'BAD_USER_INPUT', message: 'Sec-WebSocket-Key must be 16 bytes in base64' });
  const offered = headers['sec-websocket-protocol']?.split(',').map((name) => name.trim());
  if (offered && !offered.includes(protocol))
    return required(
      `The subprotocol of WebSockets is ${protocol}: not the older graphql-ws of subscriptions-transport-ws, nor any other`,
      { 'Sec-WebSocket-Protocol': protocol },
    );
  return undefined;
}
