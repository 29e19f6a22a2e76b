/** Subscriptions over event streams of a minimal client, which only records when events arrive. */

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { ServerProcess } from './processes.ts';

export interface Listener {
  readonly socket: Socket;
  /** Waits until the listener has received so many events. @returns the time of the last, in milliseconds. */
  heard(count: number): Promise<number>;
}

/** Opens a listener that takes very little processor time, since it shares the machine with what is measured. */
export async function listen({ url }: ServerProcess, token: string, query: string): Promise<Listener> {
  const { hostname, port, host } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  const body = JSON.stringify({ query });
  socket.write(
    `POST /graphql HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\nAccept: text/event-stream\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  const times: number[] = [];
  const waiting = new Map<number, (time: number) => void>();
  let text = '';
  socket.on('data', (data: Buffer) => {
    text += data.toString('latin1');
    for (let at = text.indexOf('data: '); at >= 0; at = text.indexOf('data: ')) {
      times.push(performance.now());
      waiting.get(times.length)?.(performance.now());
      text = text.slice(at + 6);
    }
    text = text.slice(-6);
  });
  return {
    socket,
    heard: (count) =>
      new Promise((settle, fail) => {
        const time = times[count - 1];
        if (time !== undefined) return settle(time);
        waiting.set(count, settle);
        setTimeout(fail, 60_000, new Error(`event ${count} did not arrive`)).unref();
      }),
  };
}
