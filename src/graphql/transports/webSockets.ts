/** Opens WebSockets, bounds how many there are, and closes them with the gateway. */

import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { GRAPHQL_TRANSPORT_WS_PROTOCOL as protocol } from 'graphql-ws';
import { WebSocketServer } from 'ws';
import type { Exchange } from '../../http/exchange.ts';
import { CloseSocket, closeCodes } from './handshake.ts';
import { type SocketConnection, type SocketOptions, serveWebSocket, socketTimeouts } from './webSocket.ts';

export interface WebSocketsOptions extends Omit<SocketOptions, 'onKnown' | 'timeouts'> {
  readonly timeouts?: Partial<SocketOptions['timeouts']> | undefined;
  /** How many bytes a message may have. */
  readonly longestMessage: number;
  /** Aborted when the gateway closes. */
  readonly closing: AbortSignal;
  /** How many sockets may be open without being authenticated. */
  readonly mostUnknown?: number;
}

export interface WebSockets {
  /** Opens a WebSocket. `findUpgradeError` must have found no error in the request. */
  accept(exchange: Exchange, socket: Duplex, head: Buffer): Promise<void>;
}

export function createWebSockets(options: WebSocketsOptions): WebSockets {
  const { closing, longestMessage, mostUnknown = 1_000 } = options;
  const timeouts = { ...socketTimeouts, ...options.timeouts };
  const open = new Set<SocketConnection>();
  /** Sockets that are not authenticated yet, the oldest first. */
  const unknown = new Set<SocketConnection>();
  const exchanges = new WeakMap<IncomingMessage, Exchange>();
  const server = createServer(longestMessage);
  server.on('headers', (lines, request) => {
    for (const [name, value] of Object.entries(exchanges.get(request)?.headers ?? {}))
      lines.push(`${name}: ${value}`);
  });
  closing.addEventListener('abort', () => {
    for (const connection of open) void connection.leave();
  });

  /** Closes the oldest socket that is not authenticated, if there are too many: usual clients authenticate at once. */
  function makeRoom(): void {
    if (unknown.size < mostUnknown) return;
    const [oldest] = unknown;
    if (oldest) unknown.delete(oldest);
    oldest?.close(
      new CloseSocket(closeCodes.tryAgainLater, 'Too many WebSockets have not said who they are'),
    );
  }

  return {
    async accept(exchange, socket, head) {
      const { request, response } = exchange;
      exchanges.set(request, exchange);
      const upgraded = new Promise<Parameters<typeof serveWebSocket>[0]>((settle) =>
        server.handleUpgrade(request, socket, head, settle),
      );
      const webSocket = await Promise.race([upgraded, once(socket, 'close').then(() => undefined)]);
      if (!webSocket) return;
      // From now on the exchange ends when the socket does.
      response.detachSocket(request.socket);
      makeRoom();
      const connection = serveWebSocket(webSocket, exchange, {
        ...options,
        timeouts,
        onKnown: () => unknown.delete(connection),
      });
      open.add(connection);
      unknown.add(connection);
      webSocket.once('close', () => {
        open.delete(connection);
        unknown.delete(connection);
      });
      if (closing.aborted) void connection.leave();
    },
  };
}

/** @param longestMessage in bytes. */
function createServer(longestMessage: number): WebSocketServer {
  return new WebSocketServer({
    noServer: true,
    maxPayload: longestMessage,
    // Each fragment, and each piece of one that is not whole, holds memory of its own, however few bytes it has. Browsers
    // send long messages in fragments of about 64 KiB, and networks in pieces of about 1 KiB.
    maxFragments: 16 + Math.ceil(longestMessage / (16 * 1024)),
    maxBufferedChunks: 1024 + Math.ceil(longestMessage / 512),
    // The zlib context of a socket takes more memory than the rest of the socket.
    perMessageDeflate: false,
    clientTracking: false,
    // Pongs would pile up for a client that does not read. `socketWriter.ts` sends them instead.
    autoPong: false,
    handleProtocols: () => protocol,
  });
}
