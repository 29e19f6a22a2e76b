/**
 * Finds out whether a pooler supports named statements. In transaction mode it gives a client another session for each
 * transaction, in which a statement that was prepared before does not exist, unless the pooler prepares it there too, as
 * PgBouncer since 1.21 (`max_prepared_statements`) and PgCat (`prepared_statements`) do. Clients cannot see a pooler's
 * version and settings, so this tries it.
 */

import type pg from 'pg';
import { createStatementNames } from '../preparedStatements.ts';
import { createSession, type Session } from '../session.ts';
import type { ServerConfig } from './client.ts';

/** How many sessions, at most, are occupied so that the first client gets another one. */
const mostOccupied = 8;

/** How long, in milliseconds, connecting may take. Beyond that the pooler has no free session, and the attempt ends. */
const longestWait = 1_000;

const text = 'SELECT pg_backend_pid() AS pid';
const name = createStatementNames()(text);

/** Returns true only if a statement was prepared in one session and then found in another. */
export async function carriesNames(server: ServerConfig): Promise<boolean> {
  const sessions: Session[] = [];
  const connect = async () => {
    const session = createSession(server, longestWait);
    sessions.push(session);
    await session.client.connect();
    return session.client;
  };
  try {
    const client = await connect();
    const first = await sessionOf(client, name);
    let isCarried: boolean | undefined;
    for (let occupied = 0; occupied < mostOccupied; occupied++) {
      const other = await connect();
      await other.query('BEGIN');
      const isItsOwn = (await sessionOf(other)) === first;
      if (isCarried === undefined) {
        const found = await sessionOf(client, name).catch(() => undefined);
        if (found !== first) isCarried = found !== undefined;
      }
      if (isCarried) return true;
      // The other client got the first session. It is shared with others, so the statement is removed from it.
      if (isItsOwn) {
        await other.query(`DEALLOCATE "${name}"`).catch(() => {});
        return false;
      }
    }
    // The first client never got another session. Perhaps each client has a session of its own, but that may change.
    return false;
  } catch {
    return false;
  } finally {
    await Promise.all(sessions.map(({ close }) => close()));
  }
}

async function sessionOf(client: pg.Client, as = ''): Promise<number | undefined> {
  const { rows } = await client.query<{ pid: number }>({ name: as, text });
  return rows[0]?.pid;
}
