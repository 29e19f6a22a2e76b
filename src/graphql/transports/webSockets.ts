/**
 * WebSockets: the server of graphql-ws over `ws`, which hands each operation to the pipeline. This file opens sockets, bounds what
 * each of them buffers and runs at a time, ends those whose client is silent, and closes all with the gateway.
 *
 * Promises: the protocol `graphql-transport-ws`; an operation is limited, cached, logged and measured like a POST; a socket ends
 * with its token; results that a client does not read are bounded. May be replaced by anything that calls the hooks of
 * `protocol.ts`, such as graphql-ws' adapter of another WebSocket server.
 */

import type { Duplex } from 'node:stream';
import { CloseCode, handleProtocols } from 'graphql-ws';
import pLimit from 'p-limit';
import { type WebSocket, WebSocketServer } from 'ws';
import { type Exchange, endExchange } from '../../http/exchange.ts';
import { closeCodes, createProtocol, type GraphqlSocket, type ProtocolOptions } from './protocol.ts';

export interface WebSocketsOptions extends ProtocolOptions {
  /** How many bytes a message may have. */
  readonly longestMessage: number;
  /** Aborted when the gateway closes. */
  readonly closing: AbortSignal;
}

export interface WebSockets {
  /** Opens a WebSocket. `webSocketAccess.ts` must have found no error in the request. */
  accept(exchange: Exchange, socket: Duplex, head: Buffer): void;
}

/** The close codes of a client that leaves in order, or without a code. */
const inOrder = new Set([1000, 1001, 1005, 1006]);

export function createWebSockets({ longestMessage, closing, ...options }: WebSocketsOptions): WebSockets {
  const server = createServer(longestMessage);
  const protocol = createProtocol(options);

  function serve(webSocket: WebSocket, exchange: Exchange): void {
    const connection = createGraphqlSocket(webSocket, exchange);
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
    // Each fragment holds memory of its own, however short, and so does each piece of an incomplete one. Browsers send long
    // messages in fragments of about 64 KiB, and networks in pieces of about 1 KiB.
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

/** How many bytes may wait to be read by the client. Above that the gateway stops reading from the client. */
const mostUnread = 64 * 1024;

/** How many operations may run at a time, not counting subscriptions that have begun, which have a limit of their own. */
const mostRunning = 100;

/** The milliseconds between two pings, and how many may stay unanswered before the connection is ended. */
const pings = { every: 12_000, most: 2 };

/** How many milliseconds a client has to read the last messages, and to close its side as well. */
const goodbye = 2_000;

/** @param opening the exchange of the request that has become the socket. */
export function createGraphqlSocket(socket: WebSocket, opening: Exchange): GraphqlSocket {
  const turns = pLimit(mostRunning);
  let count = 0;
  const isOpen = () => socket.readyState === socket.OPEN;

  /** Stops reading from the client while it does not read, or has too many operations. */
  function adjustReading(): void {
    if (isOpen() && (socket.bufferedAmount > mostUnread || turns.pendingCount > 0)) socket.pause();
    else socket.resume();
  }

  const takeTurn = () =>
    new Promise<() => void>((begin) => {
      void turns(() => {
        adjustReading();
        return new Promise<void>((end) => begin(end));
      });
      adjustReading();
    });

  function close(code: number, reason: string): undefined {
    // A reason may have 123 bytes (RFC 6455, section 5.5).
    socket.close(code, Buffer.byteLength(reason) > 123 ? '' : reason);
    // A paused socket would not read the client's close frame.
    socket.resume();
  }

  keepAlive(socket);
  // Errors in the frames of the client: ws tells the client, and closes the socket.
  socket.on('error', () => {});

  return {
    opening,
    protocol: socket.protocol,
    nextId: () => `${opening.id}.${count++}`,
    isOpen,
    close,
    takeTurn,
    onClosed: (cleanup) => void socket.once('close', cleanup),

    send: (text) =>
      new Promise((settle) => {
        if (!isOpen()) return settle();
        // The callback has an error if the socket is gone. The `close` event handles that.
        socket.send(text, () => {
          adjustReading();
          settle();
        });
        adjustReading();
      }),

    onMessage: (handle) =>
      void socket.on('message', (data) => {
        if (!isOpen()) return;
        // graphql-ws throws for a message of a type that only servers send.
        handle(String(data)).catch(() => close(CloseCode.BadRequest, 'Invalid message received'));
      }),

    async leave() {
      const cut = setInterval(() => {
        if (socket.bufferedAmount > mostUnread) socket.terminate();
      }, goodbye);
      socket.once('close', () => clearInterval(cut));
      // The last turn begins when no other operation runs.
      turns.concurrency = 1;
      await takeTurn();
      close(closeCodes.goingAway, 'The gateway closes');
    },
  };
}

/** Sends pings, and ends the connection of a client that does not respond, or does not read. */
function keepAlive(socket: WebSocket): void {
  let missed = 0;
  const onSign = () => {
    missed = 0;
  };
  socket.on('pong', onSign).on('message', onSign);
  const timer = setInterval(() => {
    // No pong can be read while the client has to wait for its operations.
    const waits = socket.isPaused && socket.bufferedAmount === 0;
    if (!waits && ++missed > pings.most) return socket.terminate();
    if (socket.readyState === socket.OPEN) socket.ping();
  }, pings.every);
  socket.once('close', () => clearInterval(timer));
}
