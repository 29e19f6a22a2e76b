/** One WebSocket as graphql-ws uses it, with bounds on what it buffers, on what it runs at a time, and on silence. */

import { CloseCode, type WebSocket as ServedSocket } from 'graphql-ws';
import pLimit from 'p-limit';
import type { WebSocket } from 'ws';
import type { Exchange } from '../../http/exchange.ts';

/** Codes of the registry that RFC 6455 opens (section 11.7). Clients connect again after them. */
export const closeCodes = { goingAway: 1001, tryAgainLater: 1013 } as const;

/** How many bytes may wait to be read by the client. Above that the gateway reads nothing of it. */
const mostUnread = 64 * 1024;

/** How many operations may run at a time, not counting subscriptions that have begun, which have a limit of their own. */
const mostRunning = 100;

/** How many milliseconds pass from one ping to the next, and after how many without a response there is no next. */
const pings = { every: 12_000, most: 2 };

/** How many milliseconds a client has to read the last that it was sent, and to close its side as well. */
export const goodbye = 2_000;

export interface Connection extends ServedSocket {
  /** The exchange of the request that has become the socket. */
  readonly opening: Exchange;
  /** The next id for the log: that of the socket and a number, which is 0 for the authentication. */
  nextId(): string;
  isOpen(): boolean;
  close(code: number, reason: string): void;
  /** Settles when another operation may run, with the function that ends its turn. */
  takeTurn(): Promise<() => void>;
  /** Calls back when the socket is closed. */
  onClosed(cleanup: () => void): void;
  /** Closes once all queries and mutations have their results. Subscriptions get no `complete`: clients subscribe elsewhere. */
  leave(): Promise<void>;
}

export function createConnection(socket: WebSocket, opening: Exchange): Connection {
  const turns = pLimit(mostRunning);
  let count = 0;
  let isLeaving = false;
  const isOpen = () => socket.readyState === socket.OPEN;

  /** Has the client wait while it does not read, or has too many operations. */
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

  function close(code: number, reason: string): void {
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
        // The callback has an error if the socket is gone. The `close` event tells of that.
        socket.send(text, () => {
          adjustReading();
          settle();
        });
        adjustReading();
      }),

    onMessage: (handle) =>
      void socket.on('message', (data) => {
        if (!isOpen() || isLeaving) return;
        // graphql-ws throws for a message of a type that only servers send.
        handle(String(data)).catch(() => close(CloseCode.BadRequest, 'Invalid message received'));
      }),

    async leave() {
      isLeaving = true;
      const cut = setInterval(() => {
        if (socket.bufferedAmount > mostUnread) socket.terminate();
      }, goodbye);
      socket.once('close', () => clearInterval(cut));
      // The last turn, which nothing else runs beside.
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
