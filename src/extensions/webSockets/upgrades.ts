/** Accepts WebSockets, and serves them. */

import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import { type Config, publicAddressOf } from '../../config/config.ts';
import type { UpgradeParts } from '../../extensionPoints.ts';
import { errorResponse } from '../../http/errorResponse.ts';
import type { Exchange } from '../../http/exchange.ts';
import { ambiguityOf } from '../../http/request.ts';
import type { HttpResponse } from '../../http/response.ts';
import { send } from '../../http/send.ts';
import { createUserQuota } from '../../http/userQuota.ts';
import { createOperations, endExchange } from './operations.ts';
import { createProtocol } from './protocol.ts';
import { createLimitedSocket, createSocketServer } from './socket.ts';

/** How many WebSockets a user may have open in one process. */
const usualMost = 100;

/** The close codes of a client that leaves in order, or without a code. */
const inOrder = new Set([1000, 1001, 1005, 1006]);

/** Makes a function that turns requests into WebSockets, or rejects them. */
export function createUpgrades(config: Config, pipeline: UpgradeParts, mostSockets = usualMost) {
  const { cors, closing } = pipeline;
  const server = createSocketServer(config.MAX_BODY_KB * 1024);
  const protocol = createProtocol({
    operations: createOperations(pipeline),
    connectionQuota: createUserQuota(mostSockets),
  });

  function serve(webSocket: WebSocket, exchange: Exchange): void {
    const connection = createLimitedSocket(webSocket, exchange);
    const closed = protocol.opened(connection, connection);
    const leave = () => void connection.leave();
    closing.addEventListener('abort', leave);
    webSocket.once('close', (code, reason) => {
      closing.removeEventListener('abort', leave);
      void closed(code, String(reason));
      if (!inOrder.has(code)) exchange.errorCode = String(code);
      endExchange(exchange, 101);
    });
    if (closing.aborted) leave();
  }

  return (exchange: Exchange, socket: Duplex, head: Buffer): void => {
    const error = findUpgradeError(exchange, config) ?? cors.rejectPage(exchange, true);
    if (error) {
      send(exchange, error);
      return;
    }
    exchange.operation = 'websocket';
    exchange.transport = 'websocket';
    const { request, response } = exchange;
    // `ws` rejects a request by this event, before it returns.
    const reject = ({ message }: Error) => send(exchange, badRequest(message));
    server.once('wsClientError', reject);
    server.handleUpgrade(request, socket, head, (webSocket) => {
      // From now on the exchange ends when the socket does.
      response.detachSocket(request.socket);
      serve(webSocket, exchange);
    });
    server.off('wsClientError', reject);
  };
}

const badRequest = (message: string) =>
  errorResponse('graphql', { code: 'BAD_USER_INPUT', message }, { Connection: 'close' });

/** The response to a request for something else than a WebSocket of GraphQL; undefined for any other. */
function findUpgradeError({ request, endpoint }: Exchange, config: Config): HttpResponse | undefined {
  const ambiguity = ambiguityOf(request);
  if (ambiguity !== undefined) return badRequest(ambiguity);
  if (endpoint === 'graphql') return undefined;
  const message = `WebSockets are opened at ${publicAddressOf(config, '/graphql')}, and nowhere else`;
  // A 426 has to name the protocol that is supported (RFC 9110, section 15.5.22).
  const headers = { Upgrade: 'websocket', Connection: 'Upgrade, close' };
  return errorResponse(endpoint, { status: 426, code: 'BAD_USER_INPUT', message }, headers);
}
