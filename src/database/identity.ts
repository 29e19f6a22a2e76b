/**
 * Which server the address of a database leads to. After a failover it may lead to another one, while earlier connections go on.
 * Promises that no connection to a server that can only be read is used, and that as soon as one leads elsewhere, the others are ended
 * and announcements are no longer trusted: those of one server say nothing about the data of another.
 */

import pg from 'pg';
import type { ReadCheck } from './reader/sql.ts';
import { endConnection } from './session.ts';

export interface Identity {
  readonly isReadOnly: boolean;
  readonly server: string;
}

/** Two columns of a statement. The time at which a server started tells it from its copies, as no name or id in its data would. */
export const identityColumns = `pg_is_in_recovery() AS "isReadOnly", concat(extract(epoch FROM pg_postmaster_start_time()), ' ',
  (SELECT oid FROM pg_database WHERE datname = current_database())) AS server`;

export type ServerWatch = ReturnType<typeof watchServer>;

export function watchServer() {
  const clients = new Map<pg.ClientBase, string>();
  const listeners = new Set<() => void>();
  let current: string | undefined;

  /** Must be called with each identity that a connection gives. @throws the error of a write, for a server that can only be read. */
  function note({ isReadOnly, server }: Identity): void {
    if (isReadOnly) throw readOnlyError();
    const isMoved = current !== undefined && current !== server;
    current = server;
    if (!isMoved) return;
    for (const listener of listeners) listener();
    for (const [client, other] of clients) if (other !== server) endConnection(client, movedMessage);
  }

  return {
    note,
    /** Calls the listener whenever connections lead to another server than before, until the signal. */
    subscribe(listener: () => void, signal: AbortSignal): void {
      listeners.add(listener);
      signal.addEventListener('abort', () => listeners.delete(listener), { once: true });
    },
    /** Notes where a new connection leads. */
    async add(client: pg.ClientBase): Promise<void> {
      const { rows } = await client.query<Identity>(`SELECT ${identityColumns}`);
      const [identity] = rows;
      if (!identity) throw new Error('the server does not say which one it is');
      note(identity);
      clients.set(client, identity.server);
      client.once('end', () => clients.delete(client));
    },
    /** For a pooler, which may lead to another server with each transaction. */
    check: {
      statement: {
        text: `SELECT ${identityColumns}`,
        values: [],
        columns: [
          { name: 'isReadOnly', read: (text) => text === 't' },
          { name: 'server', read: String },
        ],
      },
      // The rows have the columns of the statement.
      check: ([row]) => note(row as Identity),
    } satisfies ReadCheck,
  };
}

/** Begins as `pg` begins its messages about lost connections. */
const movedMessage = 'Connection terminated: the address leads to another server';

/** The error that the server itself has for a write. */
function readOnlyError(): Error {
  const error = new pg.DatabaseError('the server is a standby, which can only be read', 0, 'error');
  error.code = '25006';
  return error;
}
