/** Events in a database that announces by messages in its log. */

import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';

export type Way = 'notify' | 'logical' | 'both';

/** Has the database announce changes in another way. */
export async function announceBy(pool: pg.Pool, way: Way): Promise<void> {
  await pool.query('SELECT announce_by($1)', [way]);
}

let lagging: Promise<unknown> = Promise.resolve();

/**
 * Delays the visibility of commits for so many milliseconds: they are in the log, and wait for a synchronous standby that does
 * not exist. One lag at a time.
 */
export function lag(pool: pg.Pool, milliseconds: number): Promise<unknown> {
  lagging = lagging.then(async () => {
    await pool.query(`ALTER SYSTEM SET synchronous_standby_names = 'nobody'`);
    await pool.query('SELECT pg_reload_conf()');
    await sleep(milliseconds);
    await pool.query('ALTER SYSTEM RESET synchronous_standby_names');
    await pool.query('SELECT pg_reload_conf()');
  });
  return lagging;
}

/** Terminates all connections that read the log. */
export async function endReaders(pool: pg.Pool): Promise<void> {
  await pool.query(
    `SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE database = current_database()`,
  );
}
