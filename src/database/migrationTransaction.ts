/**
 * The transaction in which migrations are applied, one process at a time. The limits that the role has for its requests do
 * not hold in it. It waits for the locks of other sessions only briefly, since every request for the same table waits
 * behind it, and is repeated when it did not get one.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { systemCodeOf } from '../errors.ts';
import type { ServerConfig } from './connection/client.ts';
import { createSession } from './session.ts';
import { pause } from './waiting.ts';

/** The lock under which one process migrates: any number that nothing else on the server uses. */
export const migrationLock = 0xd07e7a11;

/** How long, in milliseconds, a statement of a migration may take, and for how long a transaction is repeated. */
const longestMigration = 30 * 60_000;

/** How long, in milliseconds, a statement waits for a lock of another session. */
const lockTimeout = 3_000;

/** How long, in milliseconds, requests have the tables for themselves before the transaction is repeated. */
const retryDelay = 3_000;

/** How often, in milliseconds, the server is asked which sessions the transaction waits for. */
const blockerInterval = 500;

/** PostgreSQL's codes `lock_not_available` and `deadlock_detected`. */
const lockConflicts = new Set<unknown>(['55P03', '40P01']);

export interface TransactionListener {
  /** Another process migrates the database, and this one waits for it. */
  waiting?(): void;
  /** The transaction is repeated, since it did not get a lock. `by` names the sessions that hold it, where they are known. */
  blocked?(by: string): void;
}

/**
 * Runs a transaction at READ COMMITTED, and repeats it while other sessions hold locks that it needs.
 * @throws what `run` throws. The transaction is left open then, since a lost connection could not even roll it back.
 */
export async function runMigrationTransaction<Result>(
  client: pg.ClientBase,
  connection: ServerConfig,
  run: () => Promise<Result>,
  listener: TransactionListener,
): Promise<Result> {
  // The embedded engine has one session, and no timers.
  const isServer = connection.connectionString !== undefined;
  const deadline = performance.now() + longestMigration;
  for (;;) {
    // Whatever the role's defaults are.
    await client.query('BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE');
    await client.query(withoutTimeouts);
    if (isServer) await client.query(noticeLostClient);
    await takeMigrationLock(client, listener);
    if (isServer) await client.query(`SET LOCAL lock_timeout = ${lockTimeout}`);
    const blockers = isServer ? await watchBlockers(client, connection) : undefined;
    try {
      const result = await run();
      await queryLong(client, 'COMMIT');
      return result;
    } catch (error) {
      if (!isLockConflict(error) || performance.now() > deadline) throw error;
      await client.query('ROLLBACK');
      listener.blocked?.(blockers?.last() ?? `others (${error.message})`);
    } finally {
      await blockers?.stop();
    }
    await sleep(retryDelay);
  }
}

/** By name, since PostgreSQL knows `transaction_timeout` only from 17 on. */
const withoutTimeouts = `
  SELECT set_config(name, '0', true) FROM pg_settings
  WHERE name IN ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')`;

/** Has the server end a statement whose client is gone. Not every operating system can tell, which is an error there. */
const noticeLostClient = `
  DO $$ BEGIN
    PERFORM set_config('client_connection_check_interval', '2s', true);
  EXCEPTION WHEN OTHERS THEN NULL;
  END $$`;

/** Waits until no other process migrates. */
async function takeMigrationLock(client: pg.ClientBase, listener: TransactionListener): Promise<void> {
  const { rows } = await client.query<{ taken: boolean }>('SELECT pg_try_advisory_xact_lock($1) AS taken', [
    migrationLock,
  ]);
  if (rows[0]?.taken) return;
  listener.waiting?.();
  await queryLong(client, `SELECT pg_advisory_xact_lock(${migrationLock})`);
}

/** Runs a statement that may take as long as a migration may. */
export function queryLong<Row extends pg.QueryResultRow>(client: pg.ClientBase, text: string) {
  // `pg` takes the timeout with a query too, though its types do not say so.
  const query: pg.QueryConfig & { query_timeout: number } = { text, query_timeout: longestMigration };
  return client.query<Row>(query);
}

const isLockConflict = (error: unknown): error is Error => lockConflicts.has(systemCodeOf(error));

interface Blocker {
  readonly pid: number;
  readonly name: string | null;
  readonly state: string | null;
}

/**
 * Watches, over another session, which sessions the client waits for: PostgreSQL can tell only while it waits. Where that
 * cannot be found out, nothing is known of them.
 */
async function watchBlockers(client: pg.ClientBase, connection: ServerConfig) {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  const session = createSession(connection);
  const stopping = new AbortController();
  let last: string | undefined;
  const watch = async () => {
    await session.client.connect();
    while (await pause(blockerInterval, stopping.signal)) {
      const found = await session.client.query<Blocker>(
        `SELECT DISTINCT blocker AS pid, coalesce(nullif(application_name, ''), backend_type) AS name, state
         FROM unnest(pg_blocking_pids($1)) AS blocker LEFT JOIN pg_stat_activity ON pid = blocker ORDER BY 1`,
        [rows[0]?.pid],
      );
      if (found.rows.length > 0) last = found.rows.map(blockerText).join(', ');
    }
  };
  watch().catch(() => {});
  return {
    /** Who held a lock when the client waited last. */
    last: () => last,
    async stop(): Promise<void> {
      stopping.abort();
      await session.close();
    },
  };
}

/** A transaction that is prepared for two-phase commit has no process, and 0 stands for it. */
const blockerText = ({ pid, name, state }: Blocker): string =>
  pid === 0
    ? 'a prepared transaction'
    : `${[name ?? 'a session', state].filter(Boolean).join(', ')} (process ${pid})`;
