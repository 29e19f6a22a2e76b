/** The line between the gateway and its database, on which things can go wrong. */

import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface FaultyLine {
  readonly port: number;
  /** Passes everything on so much later, in milliseconds, in each direction. */
  delay(milliseconds: number): void;
  /** Passes nothing on, and says nothing: what comes now is lost, and so are the connections it came on. */
  silence(): void;
  /** As it was at first. */
  mend(): void;
  /** Leads to another server; the connections to the one before are cut. */
  leadTo(port: number): void;
  close(): void;
}

export async function openLine(target: number): Promise<FaultyLine> {
  const sockets = new Set<Socket>();
  const silenced = new WeakSet<Socket>();
  let silent = false;
  let late = 0;
  let to = target;
  const server = createServer((near) => {
    const far = connect(to, '127.0.0.1');
    for (const [one, other] of [
      [near, far],
      [far, near],
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
          if (silent) silenced.add(near);
          if (silenced.has(near)) return;
          // In order, also when the delay changes.
          passed = Promise.all([passed, sleep(late)]).then(() => other.write(data));
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
      late = milliseconds;
    },
    silence() {
      silent = true;
    },
    mend() {
      silent = false;
      late = 0;
    },
    leadTo(port) {
      to = port;
      drop();
    },
    close() {
      server.close();
      drop();
    },
  };
}
