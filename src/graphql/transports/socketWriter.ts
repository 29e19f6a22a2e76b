/** Writes to a WebSocket, no faster than its client reads. */

import type { WebSocket } from 'ws';

/** How many bytes may wait in the socket. Above that nothing more is written, and messages of the client are not read. */
const most = 64 * 1024;

/** A message, or a function that makes it when there is room: until then its parts are shared with a cache. */
export type Message = string | (() => Buffer);

export interface SocketWriter {
  /** Sends messages in order. Settles once there is room for more; never rejects. */
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
 * @param longest how long, in milliseconds, a client may leave a message unread before its connection is ended.
 * @param onRoom is called when there may be room again.
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
      // The callback has an error if the socket is gone. The `close` event tells of that.
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
