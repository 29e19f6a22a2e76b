/** Takes requests for WebSockets. What speaks their protocol is loaded with the first of them. */

import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Logger } from 'pino';
import { findUpgradeError } from '../graphql/transports/upgradeError.ts';
import type { WebSockets, WebSocketsOptions } from '../graphql/transports/webSockets.ts';
import type { Cors } from '../http/cors.ts';
import { errorResponse, httpErrors } from '../http/errorResponse.ts';
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
