/** The mode in which a database announces changes, and switching to another. `announce_by` in the migrations explains why it works this way. */

import type pg from 'pg';
import { pause } from '../waiting.ts';
import { listenStatement } from './changeFeed.ts';

/** `both` during a switch back to NOTIFY, and while gateways listen that know NOTIFY only. */
export type AnnounceMode = 'notify' | 'logical' | 'both';

export interface FeedSetup {
  readonly mode: AnnounceMode;
  /** Whether the server has logical decoding. Without it everything is announced by NOTIFY. */
  readonly decodes: boolean;
  /** The server's setting, and the role of the connection. */
  readonly walLevel: string;
  readonly role: string;
  /** Whether the role owns the function `announce`, and so may switch the mode. */
  readonly owns: boolean;
  /** Whether the publication exists that a slot is read with. */
  readonly isPublished: boolean;
  /** The name of the database, quoted for GRANT, if the role lacks the right to create the publication. */
  readonly lacksCreateOn: string | null;
  /** How many sessions listen that know NOTIFY only, of those whose statements the role may see. */
  readonly listeners: number;
  /** How many sessions there are whose statements the role may not see. */
  readonly unseen: number;
}

/** The advisory lock under which one gateway at a time switches the mode. */
const switchLock = 0xd07e7a12;

export async function readFeedSetup(client: pg.ClientBase): Promise<FeedSetup> {
  const { rows } = await client.query<FeedSetup>(
    `SELECT substring(prosrc FROM 'WHEN ''logical'' THEN ''(\\w+)''') AS mode,
       current_setting('wal_level') = 'logical' AS decodes, current_setting('wal_level') AS "walLevel",
       current_user AS role, pg_has_role(proowner, 'USAGE') AS owns,
       EXISTS (SELECT FROM pg_publication WHERE pubname = 'dovetail') AS "isPublished",
       CASE WHEN NOT has_database_privilege(current_database(), 'CREATE') THEN quote_ident(current_database()) END
         AS "lacksCreateOn",
       (SELECT count(*)::int FROM pg_stat_activity
        WHERE datname = current_database() AND query ~* '^listen\\s+"?dovetail\\M' AND query <> $1) AS listeners,
       (SELECT count(*)::int FROM pg_stat_activity
        WHERE datname = current_database() AND query = '<insufficient privilege>') AS unseen
     FROM pg_proc WHERE oid = to_regprocedure('announce(text)')`,
    [listenStatement],
  );
  const [setup] = rows;
  if (!setup) throw new Error('there is no function announce(text)');
  return setup;
}

/** Runs a function while no other gateway switches the mode. */
export async function withSwitchLock<Value>(
  client: pg.ClientBase,
  act: () => Promise<Value>,
): Promise<Value> {
  // Stated, since the role may have other defaults.
  await client.query('BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE');
  try {
    await client.query(`SELECT pg_advisory_xact_lock(${switchLock})`);
    const value = await act();
    await client.query('COMMIT');
    return value;
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {});
    throw error;
  }
}

/** Switches the mode. Gateways are told, and reconnect. */
export async function announceBy(client: pg.ClientBase, mode: AnnounceMode): Promise<void> {
  await client.query('SELECT announce_by($1)', [mode]);
}

export async function publish(client: pg.ClientBase): Promise<void> {
  await client.query('CREATE PUBLICATION dovetail');
}

/** Selects the transactions that write, or have written, to tables whose changes are announced. */
const writers = `
  SELECT virtualtransaction AS id FROM pg_locks
  WHERE locktype = 'relation' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND relation IN (SELECT tgrelid FROM pg_trigger WHERE tgname LIKE 'announce\\_%')
    AND mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')`;

/** Waits until all transactions that write now have ended, for `longest` ms at most. Returns whether they have. */
export async function awaitWriters(client: pg.ClientBase, longest: number): Promise<boolean> {
  const { rows } = await client.query<{ id: string }>(writers);
  const begun = rows.map(({ id }) => id);
  const over = AbortSignal.timeout(longest);
  for (;;) {
    const left = await client.query<{ left: boolean }>(
      `SELECT EXISTS (SELECT FROM (${writers}) AS writers WHERE id = ANY ($1)) AS left`,
      [begun],
    );
    if (!left.rows[0]?.left) return true;
    if (!(await pause(20, over))) return false;
  }
}
