/** Connections with timeouts for silent servers: those of a pool, and others. */

import { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { makeSessionSettings } from './pooler.ts';

/** How long, in milliseconds, to wait for a connection. */
export const longestConnecting = 5_000;

/** How long, in milliseconds, a read of a start may take. */
const startStatementTimeout = 15_000;

/** How long, in milliseconds, a server may take to end a connection. */
const longestEnding = 1_000;

export interface Session {
  /** Not connected yet. To inspect a session without changing its settings, connect the client itself. */
  readonly client: pg.Client;
  /** Connects the client, with the settings that statements rely on. */
  connect(): Promise<void>;
  /** Ends the connection, even if the server does not respond. */
  close(): Promise<void>;
}

/** @param statement how long, in milliseconds, a statement may take. */
export function createSession(connection: pg.ClientConfig, statement = startStatementTimeout): Session {
  const socket = new Socket();
  const client = new pg.Client({
    ...connection,
    connectionTimeoutMillis: longestConnecting,
    query_timeout: statement,
    stream: () => socket,
  });
  // A lost connection fails the query at hand; without a listener it would end the process as well.
  client.on('error', () => {});
  return {
    client,
    async connect() {
      await client.connect();
      await makeSessionSettings(client, connection);
    },
    async close() {
      const ended = client.end().catch(() => {});
      await Promise.race([ended, sleep(longestEnding, undefined, { ref: false })]);
      socket.destroy();
    },
  };
}

/**
 * Ends the connection, and fails its statement, if the server sends nothing for this many milliseconds while a statement runs. The
 * only timer is that of the socket. The option `query_timeout` of `pg` has a timer for each statement and wraps its callback, so
 * that objects of requests survive minor garbage collections: that took a tenth of the processor time of a small read.
 * @param client must be connected, since its socket is replaced when it begins TLS.
 */
export function endWhenSilent(client: pg.ClientBase, longest: number): void {
  // Members that the types of `pg` leave out or describe more generally. `readyForQuery` is false while a statement runs.
  const connected = client as unknown as { connection: { stream: Socket }; readyForQuery: boolean };
  const { stream } = connected.connection;
  // Not a callback of `setTimeout`, which is called only once: the first timeout may pass while no statement runs.
  stream.setTimeout(longest).on('timeout', () => {
    // The message is that of `pg`: see `isUnresponsive`.
    if (!connected.readyForQuery) stream.destroy(new Error('Query read timeout'));
  });
}

/** Whether a query timed out on an open connection. `pg` has no code for that. */
export function isUnresponsive(error: unknown): boolean {
  return error instanceof Error && /\bQuery read timeout\b/.test(error.message);
}

/** The diagnosis of a silent database. */
export const unresponsive = {
  says: 'the database took the connection and then did not respond in time',
  advice: 'Look whether its pooler is paused, its disk is full or hangs, or somebody holds a lock.',
};
export const unresponsiveText = `${unresponsive.says}. ${unresponsive.advice}`;
