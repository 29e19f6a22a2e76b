/** A line to the database server that can be cut, by either end, with or without a word. */

import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import type pg from 'pg';

/** A database that is reached by a pool: a `Database` is one. */
export interface Target {
  readonly pool: pg.Pool;
}

export interface Line {
  readonly url: string;
  /** Ends the connections at the server's end. */
  terminate(): Promise<void>;
  /** Passes nothing on from now, as if the cable was cut. */
  hold(): void;
  /** Passes everything on but notifications and what is read from the log, as some poolers do. */
  deafen(): void;
  /** Passes on those as well that come from now on, over the connections that there are. */
  hear(): void;
  /** Drops what was held, and passes on what comes anew, those included. */
  release(): void;
  /** From now on, has new connections lead to another database of the server, as if to another server. */
  redirect(other: Target): void;
  /** How many connections it has held so far. */
  held(): number;
  refuse(): Promise<void>;
  accept(): Promise<void>;
  close(): Promise<void>;
}

/** The types of the messages (PostgreSQL's documentation, "Message Formats"): notifications, and data of the log. */
const announcing = ['A', 'd'].map((type) => type.charCodeAt(0));

/** A line to the server of the database. */
export async function openLine(target: Target): Promise<Line> {
  const url = new URL(target.pool.options.connectionString ?? '');
  const sockets = new Set<Socket>();
  const held = new Set<Socket>();
  let holding = false;
  let deaf = false;
  const nameOf = ({ pool }: Target) => new URL(pool.options.connectionString ?? '').pathname.slice(1);
  let name = nameOf(target);
  const server = createServer((near) => {
    // The start-up message, which comes in one piece; all names are as long.
    const begun = name;
    if (begun !== nameOf(target))
      near.once('data', (data) =>
        data.fill(begun, data.indexOf(nameOf(target)), data.indexOf(nameOf(target)) + begun.length),
      );
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
      one.on('data', (data) => {
        // A connection that only listens gets nothing else in the same piece.
        if (deaf && one === far && announcing.includes(data[0] ?? 0)) return;
        if (!holding && !held.has(near)) other.write(data);
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
    deafen() {
      deaf = true;
    },
    hear() {
      deaf = false;
    },
    release() {
      holding = false;
      deaf = false;
      drop();
    },
    redirect(other) {
      name = nameOf(other);
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
