/** WebSockets for tests, which send and receive single messages of the protocol. */

import { once } from 'node:events';
import WebSocket, { type ClientOptions } from 'ws';
import type { TestGateway } from './gateway.ts';

export type RawSocket = Awaited<ReturnType<typeof openSocket>>;

const open = new Set<WebSocket>();

/** Closes all sockets; to be called after each test, since an open socket keeps its gateway from closing. */
export function closeSockets(): void {
  for (const socket of open) socket.terminate();
  open.clear();
}

/** Opens a socket that sends nothing by itself. */
export async function openSocket(gateway: Pick<TestGateway, 'url'>, options: ClientOptions = {}) {
  const socket = new WebSocket(`${gateway.url}/graphql`, 'graphql-transport-ws', options);
  open.add(socket);
  // biome-ignore lint/suspicious/noExplicitAny: a test names the shape of its own messages where it reads them.
  const unread: any[] = [];
  let wake = () => {};
  socket.on('message', (data) => {
    unread.push(JSON.parse(String(data)));
    wake();
  });
  const closed = new Promise<{ code: number; reason: string }>((settle) => {
    socket.once('close', (code, reason) => {
      settle({ code, reason: String(reason) });
      wake();
    });
  });
  await once(socket, 'open');
  return {
    socket,
    /** The messages that were received and not read. */
    unread,
    /** The code and the reason with which the gateway closes, or has closed, the socket. */
    closed,
    send: (message: unknown) => socket.send(typeof message === 'string' ? message : JSON.stringify(message)),
    /** The next unread message. */
    async next() {
      while (unread.length === 0) {
        if (socket.readyState === socket.CLOSED) throw new Error('the socket was closed');
        await new Promise<void>((settle) => {
          wake = settle;
        });
      }
      return unread.shift();
    },
  };
}

/** Opens a socket and authenticates. */
export async function connectSocket(
  gateway: Pick<TestGateway, 'url'>,
  token: string,
  options: ClientOptions = {},
) {
  const raw = await openSocket(gateway, options);
  raw.send({ type: 'connection_init', payload: { Authorization: `Bearer ${token}` } });
  const { type } = await raw.next();
  if (type !== 'connection_ack') throw new Error(`${type} is no acknowledgement`);
  return raw;
}
