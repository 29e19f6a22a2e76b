/** A TCP proxy in front of the database server, which a test can stall, cut, or point at another database. */

import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import type pg from 'pg';
import { fatal } from '../../src/database/embedded/server.ts';
import { listen } from './listen.ts';

/** A database with a pool of connections, such as a `Database`. */
export interface Target {
  readonly pool: pg.Pool;
}

export type TcpProxy = Awaited<ReturnType<typeof openTcpProxy>>;

/** The types of the dropped messages (PostgreSQL's documentation, "Message Formats"): notifications, and replication data. */
const announcing = ['A', 'd'].map((type) => type.charCodeAt(0));

/** Opens a proxy in front of the server of the database. */
export async function openTcpProxy(target: Target) {
  const url = new URL(target.pool.options.connectionString ?? '');
  let farPort = Number(url.port);
  const sockets = new Set<Socket>();
  const held = new Set<Socket>();
  let holding = false;
  let deaf = false;
  let ending = false;
  const nameOf = ({ pool }: Target) => new URL(pool.options.connectionString ?? '').pathname.slice(1);
  let name = nameOf(target);
  const server = createServer((near) => {
    // Replaces the name of the database in the start-up message, which comes in one piece. All names have the same length.
    const begun = name;
    if (begun !== nameOf(target))
      near.once('data', (data) =>
        data.fill(begun, data.indexOf(nameOf(target)), data.indexOf(nameOf(target)) + begun.length),
      );
    const far = connect(farPort, url.hostname);
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
        // A connection that only listens gets no other message in the same piece.
        if (deaf && one === far && announcing.includes(data[0] ?? 0)) return;
        if (ending && one === far) {
          ending = false;
          near.end(Buffer.concat([data, fatal('57P01', 'terminating connection')]));
          return;
        }
        if (!holding && !held.has(near)) other.write(data);
        else held.add(near);
      });
    }
  });
  const drop = () => {
    for (const socket of sockets) socket.destroy();
  };
  const { host, port } = new URL(await listen(server));
  const nearUrl = Object.assign(new URL(url), { host });
  return {
    url: nearUrl.href,
    /** Has the server end the connections of this proxy. */
    async terminate() {
      await target.pool.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
          AND client_port = ANY ('{${[...sockets].map(({ localPort = 0 }) => localPort)}}')`);
    },
    /** Ends the connection that gets the next response, by the error of a server that shuts down, in one piece with the response. */
    endWithNextResponse() {
      ending = true;
    },
    /** Forwards nothing from now on, as if the cable was cut. */
    hold() {
      holding = true;
    },
    /** Drops notifications and replication data, as some poolers do, and forwards everything else. */
    deafen() {
      deaf = true;
    },
    /** Forwards notifications and replication data again, over the existing connections. */
    hear() {
      deaf = false;
    },
    /** Forwards new data again, but nothing ever of the connections that `hold` has stalled. */
    resume() {
      holding = false;
    },
    /** Ends `hold` and `deafen`, and drops all connections. New ones are forwarded. */
    release() {
      holding = false;
      deaf = false;
      drop();
    },
    /** Connects new connections to another database of the server, as if to another server. */
    redirect(other: Target) {
      name = nameOf(other);
    },
    /** Leads new connections to the server on another port. */
    turnTo(other: number) {
      farPort = other;
    },
    /** Leads to the server on another port from now on, and drops all connections. */
    leadTo(other: number) {
      farPort = other;
      drop();
    },
    /** How many connections `hold` has stalled so far. */
    held: () => held.size,
    async refuse() {
      server.close();
      drop();
      await once(server, 'close');
    },
    async accept() {
      await listen(server, Number(port));
    },
    async close() {
      server.close();
      drop();
    },
  };
}
