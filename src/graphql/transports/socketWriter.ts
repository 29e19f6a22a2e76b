/** Writes to a WebSocket, no faster than its client reads. */

import type { WebSocket } from 'ws';

/** How many bytes may wait in the socket before nothing more is given to it, and what the client sends is left unread. */
const most = 64 * 1024;

/** A message, or what makes it when there is room: until then its parts may be shared with a cache. */
export type Message = string | (() => Buffer);

export interface SocketWriter {
  /** Sends messages one after the other. Settles once there is room for more; never rejects. */
  write(...messages: readonly Message[]): Promise<void>;
  /** Responds to a ping of the WebSocket protocol. */
  pong(data: Buffer): void;
  isFull(): boolean;
}

interface Waiting {
  send(sent: () => void): void;
  sent(): void;
}

/**
 * @param longest how long, in milliseconds, a client may leave a message unread before it is cut off.
 * @param onRoom called when there may be room again.
 */
export function createSocketWriter(socket: WebSocket, longest: number, onRoom: () => void): SocketWriter {
  const waiting: Waiting[] = [];
  const isOpen = () => socket.readyState === socket.OPEN;
  const isFull = () => waiting.length > 0 || socket.bufferedAmount > most;

  function flush(): void {
    while (!isOpen() || socket.bufferedAmount <= most) {
      const next = waiting.shift();
      if (!next) return;
      if (!isOpen()) {
        next.sent();
        continue;
      }
      // Called with an error for a socket that is gone, which its `close` tells of.
      next.send(() => {
        next.sent();
        flush();
        onRoom();
      });
    }
  }

  function put(send: Waiting['send']): Promise<void> {
    return new Promise((settle) => {
      let timer: NodeJS.Timeout | undefined;
      const sent = () => {
        clearTimeout(timer);
        settle();
      };
      waiting.push({ send, sent });
      flush();
      if (!isOpen()) return;
      if (isFull()) timer = setTimeout(() => socket.terminate(), longest);
      else settle();
    });
  }

  socket.once('close', flush);
  return {
    isFull,
    pong: (data) => void put((sent) => socket.pong(data, false, sent)),
    async write(...messages) {
      const puts = messages.map((message) =>
        put((sent) =>
          socket.send(typeof message === 'string' ? message : message(), { binary: false }, sent),
        ),
      );
      await Promise.all(puts);
    },
  };
}
