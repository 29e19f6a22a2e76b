/** Connections that no silent server can hold up: those outside of any pool, and those of a pool. */

import { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { makeSessionSettings } from './pooler.ts';

/** How long, in milliseconds, it is waited for a connection. */
export const longestConnecting = 5_000;

/** How long, in milliseconds, a statement of a start may take that only looks at something. */
const startStatementTimeout = 15_000;

/** How long, in milliseconds, a server may take to end a connection. */
const longestEnding = 1_000;

export interface Session {
  /** Not connected yet. Whoever only wants to know of the session what it is connects it by itself. */
  readonly client: pg.Client;
  /** Connects the client, with the settings that statements rely on. */
  connect(): Promise<void>;
  /** Ends the connection, whatever the server says to that. */
  close(): Promise<void>;
}

/** @param statement how long, in milliseconds, a statement may take for which nothing else is said. */
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
 * Ends the connection, and fails its statement, if the server sends nothing for so many milliseconds while a statement runs. The
 * only timer is that of the socket. The option `query_timeout` of `pg` has a timer for each statement and wraps its callback,
 * after which the objects of requests survive minor garbage collections: that took a tenth of the processor time of a small read.
 * @param client connected already, since its socket is replaced when it begins TLS.
 */
export function endWhenSilent(client: pg.ClientBase, longest: number): void {
  // Members that the types of `pg` leave out or describe more generally. `readyForQuery` is false while a statement runs.
  const connected = client as unknown as { connection: { stream: Socket }; readyForQuery: boolean };
  const { stream } = connected.connection;
  // Not by the argument of `setTimeout`, which is called once: the time may pass while no statement runs.
  stream.setTimeout(longest).on('timeout', () => {
    // The message is that of `pg`: see `isUnresponsive`.
    if (!connected.readyForQuery) stream.destroy(new Error('Query read timeout'));
  });
}

/** Whether it was given up to wait for the database, which had taken the connection. `pg` has no code for that. */
export function isUnresponsive(error: unknown): boolean {
  return error instanceof Error && /\bQuery read timeout\b/.test(error.message);
}

/** What is said of a database that is silent. */
export const unresponsive = {
  says: 'the database took the connection and then did not respond in time',
  advice: 'Look whether its pooler is paused, its disk is full or hangs, or somebody holds a lock.',
};
export const unresponsiveText = `${unresponsive.says}. ${unresponsive.advice}`;
