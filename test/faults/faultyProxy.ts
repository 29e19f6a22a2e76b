/** A TCP proxy between the gateway and its database, which can delay data, lose it, or lead to another server. */

import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface FaultyProxy {
  readonly port: number;
  /** Delays data in each direction, in milliseconds. */
  delay(milliseconds: number): void;
  /** Drops all data without closing a connection. A connection whose data was dropped stays silent for good. */
  silence(): void;
  /** Ends the delay and the silence. */
  restore(): void;
  /** Leads to another server from now on, and closes the connections to the previous one. */
  redirect(port: number): void;
  close(): void;
}

export async function openFaultyProxy(target: number): Promise<FaultyProxy> {
  const sockets = new Set<Socket>();
  const silenced = new WeakSet<Socket>();
  let isSilent = false;
  let delay = 0;
  let targetPort = target;
  const server = createServer((downstream) => {
    const upstream = connect(targetPort, '127.0.0.1');
    for (const [one, other] of [
      [downstream, upstream],
      [upstream, downstream],
    ] as const) {
      sockets.add(one);
      let passed: Promise<unknown> = Promise.resolve();
      one
        .on('error', () => {})
        .on('close', () => {
          sockets.delete(one);
          other.destroy();
        })
        .on('data', (data) => {
          if (isSilent) silenced.add(downstream);
          if (silenced.has(downstream)) return;
          // Waits for the data before it too, so that the order stays when the delay changes.
          passed = Promise.all([passed, sleep(delay)]).then(() => other.write(data));
        });
    }
  });
  const drop = () => {
    for (const socket of sockets) socket.destroy();
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return {
    port: typeof address === 'object' && address ? address.port : 0,
    delay(milliseconds) {
      delay = milliseconds;
    },
    silence() {
      isSilent = true;
    },
    restore() {
      isSilent = false;
      delay = 0;
    },
    redirect(port) {
      targetPort = port;
      drop();
    },
    close() {
      server.close();
      drop();
    },
  };
}
