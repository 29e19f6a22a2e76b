/**
 * WebSockets: graphql-ws' own server over `ws`, which hands each operation to the pipeline. This file opens sockets, bounds how
 * many are not authenticated, and closes all with the gateway.
 *
 * Promises: the protocol `graphql-transport-ws`; an operation is limited, cached, logged and measured like a POST; a socket ends
 * with its token; what a client causes and does not read is bounded. May be replaced by anything that calls the hooks of
 * `protocol.ts`, such as graphql-ws' adapter of another WebSocket server.
 */

import type { Duplex } from 'node:stream';
import { handleProtocols } from 'graphql-ws';
import { type WebSocket, WebSocketServer } from 'ws';
import { type Exchange, endExchange } from '../../http/exchange.ts';
import { createProtocol, type ProtocolOptions } from './protocol.ts';
import { type Connection, closeCodes, createConnection, goodbye } from './webSocket.ts';

export interface WebSocketsOptions extends Pick<ProtocolOptions, 'operations' | 'connectionQuota'> {
  /** How many bytes a message may have. */
  readonly longestMessage: number;
  /** How many sockets may be open without being authenticated; 1,000 unless given. */
  readonly mostUnknown?: number | undefined;
  /** Aborted when the gateway closes. */
  readonly closing: AbortSignal;
}

export interface WebSockets {
  /** Opens a WebSocket. `webSocketAccess.ts` must have found no error in the request. */
  accept(exchange: Exchange, socket: Duplex, head: Buffer): void;
}

/** The close codes of a client that leaves in order, or without a code. */
const inOrder = new Set([1000, 1001, 1005, 1006]);

export function createWebSockets({
  longestMessage,
  mostUnknown = 1_000,
  closing,
  ...options
}: WebSocketsOptions): WebSockets {
  const open = new Set<Connection>();
  /** Those that are not authenticated yet, the oldest first. */
  const unknown = new Set<Connection>();
  const server = createServer(longestMessage);
  const protocol = createProtocol({
    ...options,
    onKnown: (connection) => unknown.delete(connection),
  });
  closing.addEventListener('abort', () => {
    for (const connection of open) void connection.leave();
  });

  /** Closes the oldest socket that is not authenticated, if there are too many: usual clients authenticate at once. */
  function makeRoom(): void {
    const [oldest] = unknown;
    if (!oldest || unknown.size <= mostUnknown) return;
    unknown.delete(oldest);
    oldest.close(closeCodes.tryAgainLater, 'Too many WebSockets have not said who they are');
  }

  function serve(webSocket: WebSocket, exchange: Exchange): void {
    const connection = createConnection(webSocket, exchange);
    open.add(connection);
    unknown.add(connection);
    makeRoom();
    const closed = protocol.opened(connection, connection);
    webSocket.once('close', (code, reason) => {
      open.delete(connection);
      unknown.delete(connection);
      void closed(code, String(reason));
      if (!inOrder.has(code)) exchange.errorCode = String(code);
      endExchange(exchange, 101);
    });
    if (closing.aborted) void connection.leave();
  }

  return {
    accept(exchange, socket, head) {
      const { request, response } = exchange;
      server.handleUpgrade(request, socket, head, (webSocket) => {
        // From now on the exchange ends when the socket does.
        response.detachSocket(request.socket);
        serve(webSocket, exchange);
      });
    },
  };
}

/** @param longestMessage in bytes. */
function createServer(longestMessage: number): WebSocketServer {
  const options = {
    noServer: true,
    maxPayload: longestMessage,
    // Each fragment, and each piece of one that is not whole, holds memory of its own, however few bytes it has. Browsers
    // send long messages in fragments of about 64 KiB, and networks in pieces of about 1 KiB.
    maxFragments: 16 + Math.ceil(longestMessage / (16 * 1024)),
    maxBufferedChunks: 1024 + Math.ceil(longestMessage / 512),
    // graphql-ws takes a moment to note an operation, which the client's next message may be about.
    allowSynchronousEvents: false,
    // The zlib context of a socket takes more memory than the rest of the socket.
    perMessageDeflate: false,
    clientTracking: false,
    closeTimeout: goodbye,
    handleProtocols,
  };
  return new WebSocketServer(options);
}
