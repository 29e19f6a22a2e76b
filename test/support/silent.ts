/** A server that accepts connections and then never responds, like a paused pooler or a server whose disk hangs. */

import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { message } from '../../src/database/embedded/server.ts';

export interface SilentServer {
  readonly url: string;
  /** Settles when the first statement has come. */
  readonly asked: Promise<void>;
  close(): void;
}

/**
 * The server does not respond to the end of a connection either.
 * @param greets whether clients can connect. Otherwise they get nothing at all, and `asked` settles when the first connects.
 */
export async function openSilentServer(greets = true): Promise<SilentServer> {
  const greeting = Buffer.concat([message('R', Buffer.alloc(4)), message('Z', Buffer.from('I'))]);
  const sockets = new Set<Socket>();
  let ask = () => {};
  const asked = new Promise<void>((settle) => {
    ask = settle;
  });
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    if (greets) socket.once('data', () => socket.write(greeting, () => socket.once('data', ask)));
    else ask();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  // It listens on a port, and not on a pipe.
  const { port } = server.address() as AddressInfo;
  return {
    url: `postgres://me:secret@127.0.0.1:${port}/none`,
    asked,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
