/** A line to the database server that can be cut, by either end, with or without a word. */

import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import type { Database } from '../src/database/database.ts';

export interface Line {
  readonly url: string;
  /** Ends the connections at the server's end. */
  terminate(): Promise<void>;
  /** Passes nothing on from now, as if the cable was cut. */
  hold(): void;
  /** Drops what was held, and passes on what comes anew. */
  release(): void;
  /** Passes on all but notifications, which the server sends and nobody gets, until told to deliver again. */
  swallow(): void;
  deliver(): void;
  /** How many connections it has held so far. */
  held(): number;
  refuse(): Promise<void>;
  accept(): Promise<void>;
  close(): Promise<void>;
}

/** A line to the server of the database. */
export async function openLine(target: Database): Promise<Line> {
  const url = new URL(target.pool.options.connectionString ?? '');
  const sockets = new Set<Socket>();
  const held = new Set<Socket>();
  let holding = false;
  let swallowing = false;
  const server = createServer((near) => {
    const far = connect(Number(url.port), url.hostname);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one
        .on('error', () => {})
        .on('close', () => {
          sockets.delete(one);
          other.destroy();
        });
      const pass = one === far ? createSieve(() => swallowing) : (data: Buffer) => data;
      one.on('data', (data) => {
        if (!holding && !held.has(near)) other.write(pass(data));
        else held.add(near);
      });
    }
  });
  const listen = async (port: number) => {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    return typeof address === 'object' && address ? address.port : 0;
  };
  const drop = () => {
    for (const socket of sockets) socket.destroy();
  };
  const port = await listen(0);
  const nearUrl = new URL(url);
  nearUrl.host = `127.0.0.1:${port}`;
  return {
    url: nearUrl.href,
    async terminate() {
      await target.pool.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
          AND client_port = ANY ('{${[...sockets].map(({ localPort = 0 }) => localPort)}}')`);
    },
    hold() {
      holding = true;
    },
    release() {
      holding = false;
      drop();
    },
    swallow() {
      swallowing = true;
    },
    deliver() {
      swallowing = false;
    },
    held: () => held.size,
    async refuse() {
      server.close();
      drop();
      await once(server, 'close');
    },
    async accept() {
      await listen(port);
    },
    async close() {
      server.close();
      drop();
    },
  };
}

/** The type of the message by which a server tells of a notification. */
const notification = 'A'.charCodeAt(0);

/** Leaves notifications out of what a server sends, while told to. A message that is not whole has to wait. */
function createSieve(isClosed: () => boolean): (data: Buffer) => Buffer {
  let rest = Buffer.alloc(0);
  return (data) => {
    rest = Buffer.concat([rest, data]);
    const passed: Buffer[] = [];
    // A type, and a length that counts itself.
    while (rest.length >= 5 && rest.length > rest.readInt32BE(1)) {
      const end = 1 + rest.readInt32BE(1);
      if (rest[0] !== notification || !isClosed()) passed.push(rest.subarray(0, end));
      rest = rest.subarray(end);
    }
    return Buffer.concat(passed);
  };
}
