/** WebSockets: which requests become one, how many there may be, and how they end with the gateway. */

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
  /** How many sockets may not have said who they are. */
  readonly mostUnknown?: number;
}

export interface WebSockets {
  /** Makes a WebSocket of the connection of a request that `findUpgradeError` has nothing against. */
  accept(exchange: Exchange, socket: Duplex, head: Buffer): Promise<void>;
}

export function createWebSockets(options: WebSocketsOptions): WebSockets {
  const { closing, longestMessage, mostUnknown = 1_000 } = options;
  const timeouts = { ...socketTimeouts, ...options.timeouts };
  const open = new Set<SocketConnection>();
  /** Those that have not said who they are, the oldest first. */
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

  /** Honest clients say at once who they are, so it is the oldest that have to go. */
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
      // Now it is the socket's end that ends the exchange.
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
    // A context of zlib for each socket takes more memory than all else of it.
    perMessageDeflate: false,
    clientTracking: false,
    // However much of them waited for a client that does not read: see `socketWriter.ts`.
    autoPong: false,
    handleProtocols: () => protocol,
  });
}
