/**
 * Whether a pooler lets clients name statements. In transaction mode it gives them another session every time, which does
 * not have what was named in the one before: PgBouncer since 1.21 (`max_prepared_statements`) and PgCat
 * (`prepared_statements`) name it there as well, others do not. Versions and settings are not for clients to see: so it is tried.
 */

import type pg from 'pg';
import { createStatementNames } from '../preparedStatements.ts';
import { createSession, type Session } from '../session.ts';
import type { ServerConfig } from './client.ts';

/** How many sessions are kept from the client that tries, at most, for it to get another. */
const others = 8;

/** How long, in milliseconds, it may take to get another: where all are in use it is left at that. */
const longestWait = 1_000;

const text = 'SELECT pg_backend_pid() AS pid';
const name = createStatementNames()(text);

/** True only when it was seen that a statement was named in one session and found in another. */
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
    for (let taken = 0; taken < others; taken++) {
      const other = await connect();
      await other.query('BEGIN');
      const isItsOwn = (await sessionOf(other)) === first;
      if (isCarried === undefined) {
        const found = await sessionOf(client, name).catch(() => undefined);
        if (found !== first) isCarried = found !== undefined;
      }
      if (isCarried) return true;
      // Nothing is to be left in a session that others use.
      if (isItsOwn) {
        await other.query(`DEALLOCATE "${name}"`).catch(() => {});
        return false;
      }
    }
    // As with a session for each client: it may be, but nobody knows for how long.
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
