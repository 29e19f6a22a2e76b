/** WebSockets for tests, which send and receive single messages of the protocol. */

import { once } from 'node:events';
import WebSocket, { type ClientOptions } from 'ws';
import type { TestGateway } from './gateway.ts';

export const socketUrl = (gateway: Pick<TestGateway, 'url'>, path = '/graphql') =>
  gateway.url.replace(/^http/, 'ws') + path;

/** A client that sends nothing by itself. */
export interface RawSocket {
  readonly socket: WebSocket;
  send(message: unknown): void;
  /** The next unread message. */
  // biome-ignore lint/suspicious/noExplicitAny: a test names the shape of its own messages where it reads them.
  next(): Promise<any>;
  /** The messages that were received and not read. */
  readonly unread: unknown[];
  /** The code and the reason with which the gateway closes, or has closed, the socket. */
  readonly closed: Promise<{ code: number; reason: string }>;
}

const open = new Set<WebSocket>();

/** Closes all sockets; to be called after each test, since an open socket keeps its gateway from closing. */
export function closeSockets(): void {
  for (const socket of open) socket.terminate();
  open.clear();
}

export async function openSocket(
  gateway: Pick<TestGateway, 'url'>,
  options: ClientOptions = {},
): Promise<RawSocket> {
  const socket = new WebSocket(socketUrl(gateway), ['graphql-transport-ws'], options);
  open.add(socket);
  const unread: unknown[] = [];
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
    unread,
    closed,
    send: (message) => socket.send(typeof message === 'string' ? message : JSON.stringify(message)),
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
): Promise<RawSocket> {
  const raw = await openSocket(gateway, options);
  raw.send({ type: 'connection_init', payload: { Authorization: `Bearer ${token}` } });
  const { type } = await raw.next();
  if (type !== 'connection_ack') throw new Error(`${type} is no acknowledgement`);
  return raw;
}
