/** Writes to a WebSocket, no faster than its client reads. */

import type { WebSocket } from 'ws';

/** How many bytes may wait to be sent before whoever writes has to wait, and what the client sends is left unread. */
const most = 64 * 1024;

export interface SocketWriter {
  /** Sends messages one after the other. Settles once there is room for more; never rejects. */
  write(...messages: readonly (string | Buffer)[]): Promise<void>;
  isFull(): boolean;
}

/**
 * @param longest how long, in milliseconds, a client may leave unread what it was sent before it is cut off.
 * @param onRoom called when there may be room again.
 */
export function createSocketWriter(socket: WebSocket, longest: number, onRoom: () => void): SocketWriter {
  const isFull = () => socket.bufferedAmount > most;

  function send(message: string | Buffer): Promise<void> {
    return new Promise((settle) => {
      if (socket.readyState !== socket.OPEN) return settle();
      let timer: NodeJS.Timeout | undefined;
      // Called with an error for a socket that is gone, which its `close` tells of.
      socket.send(message, { binary: false }, () => {
        if (timer) onRoom();
        clearTimeout(timer);
        settle();
      });
      if (isFull()) timer = setTimeout(() => socket.terminate(), longest);
      else settle();
    });
  }

  return {
    isFull,
    async write(...messages) {
      for (const message of messages) await send(message);
    },
  };
}
