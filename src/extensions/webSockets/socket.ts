/**
 * The sockets, over `ws`. Bounds what each of them buffers and runs at a time, and ends those whose client is silent or does not read.
 */

import { handleProtocols } from 'graphql-ws';
import pLimit from 'p-limit';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Exchange } from '../../http/exchange.ts';

/**
 * Codes of the registry that RFC 6455 opens (section 11.7), after which clients connect again, and the code of graphql-transport-ws for
 * a message that breaks the protocol.
 */
export const closeCodes = { goingAway: 1001, tryAgainLater: 1013, badRequest: 4400 } as const;

/** @param longestMessage in bytes. */
export function createSocketServer(longestMessage: number): WebSocketServer {
  const options = {
    noServer: true,
    maxPayload: longestMessage,
    // Each fragment holds memory of its own, however short, and so does each piece of an incomplete one. Browsers send long
    // messages in fragments of about 64 KiB, and networks in pieces of about 1 KiB.
    maxFragments: 16 + Math.ceil(longestMessage / (16 * 1024)),
    maxBufferedChunks: 1024 + Math.ceil(longestMessage / 512),
    // A protocol takes a moment to note an operation, which the client's next message may be about.
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

/** How many milliseconds running operations, and their results, may take when the gateway closes. */
const longestLeaving = 15_000;

/**
 * One WebSocket with its limits.
 * @param opening the exchange of the request that has become the socket.
 */
export function createLimitedSocket(socket: WebSocket, opening: Exchange) {
  const turns = pLimit(mostRunning);
  let count = 0;
  const isOpen = () => socket.readyState === socket.OPEN;

  /** Stops reading from the client while it does not read, or has too many operations. */
  function adjustReading(): void {
    if (isOpen() && (socket.bufferedAmount > mostUnread || turns.pendingCount > 0)) socket.pause();
    else socket.resume();
  }

  /** Settles when another operation may run, with the function that ends its turn. */
  const takeTurn = () =>
    new Promise<() => void>((begin) => {
      void turns(() => {
        adjustReading();
        return new Promise<void>((end) => begin(end));
      });
      adjustReading();
    });

  const close = (code: number, reason: string) => closeSocket(socket, code, reason);

  keepAlive(socket);
  // Errors in the frames of the client: ws tells the client, and closes the socket.
  socket.on('error', () => {});

  return {
    opening,
    protocol: socket.protocol,
    isOpen,
    close,
    takeTurn,

    send: (text: string) =>
      new Promise<void>((settle) => {
        if (!isOpen()) return settle();
        // The callback has an error if the socket is gone. The `close` event handles that.
        socket.send(text, () => {
          adjustReading();
          settle();
        });
        adjustReading();
      }),

    onMessage: (handle: (text: string) => Promise<void>) =>
      void socket.on('message', (data) => {
        if (!isOpen()) return;
        // A protocol throws for a message of a type that only servers send.
        handle(String(data)).catch(() => close(closeCodes.badRequest, 'Invalid message received'));
      }),

    /** The next id for the log: that of the socket and a number, which is 0 for the authentication. */
    nextId: () => `${opening.id}.${count++}`,

    /** Calls back when the socket is closed. */
    onClosed: (cleanup: () => void) => void socket.once('close', cleanup),

    /** Closes once all queries and mutations have their results. Subscriptions get no `complete`: clients subscribe elsewhere. */
    async leave(): Promise<void> {
      // A result is not read, or takes too long.
      const cut = setTimeout(() => socket.terminate(), longestLeaving);
      socket.once('close', () => clearTimeout(cut));
      // The last turn begins when no other operation runs.
      turns.concurrency = 1;
      await takeTurn();
      close(closeCodes.goingAway, 'The gateway closes');
    },
  };
}

function closeSocket(socket: WebSocket, code: number, reason: string): undefined {
  // A reason may have 123 bytes (RFC 6455, section 5.5).
  socket.close(code, Buffer.byteLength(reason) > 123 ? '' : reason);
  // A paused socket would not read the client's close frame.
  socket.resume();
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
