/** Clients of the embedded engine that are not the gateway: what they do to their session, and how they leave it. */

import pg from 'pg';
import type { Account } from '../support/accounts.ts';
import type { Counts } from './floor.ts';
import { type Table, write } from './writes.ts';

/** What guests do, and whether they can write afterwards. */
export const habits: readonly (readonly [sql: string, canWrite: boolean])[] = [
  ['DISCARD ALL', true],
  ['UNLISTEN *', true],
  ['LISTEN something', true],
  ['DEALLOCATE ALL', true],
  ["SELECT pg_catalog.set_config('search_path', '', false)", true],
  ['SET session_replication_role = replica', true],
  ["SET timezone = 'Asia/Kathmandu'", true],
  ["SET datestyle = 'SQL, DMY'", true],
  ["SET client_encoding = 'latin1'", true],
  ['SET extra_float_digits = -10', true],
  ['SET statement_timeout = 1', true],
  ['SET default_transaction_isolation = serializable', true],
  ['SET default_transaction_read_only = on', false],
  ['SET ROLE pg_read_all_data', false],
  ['CREATE TEMP TABLE "DttTemplate" (id int, name text)', true],
  ['CREATE TEMP TABLE "User" AS SELECT * FROM public."User" WITH NO DATA', true],
  ['PREPARE something AS SELECT 1', true],
  ['BEGIN; DECLARE something CURSOR WITH HOLD FOR SELECT 1; COMMIT', true],
  ['SELECT pg_catalog.pg_advisory_lock(1)', true],
  // In the middle of a transaction, which comes to nothing.
  ['BEGIN; UPDATE public."DttTemplate" SET name = (name::int + 1)::text', false],
  ['BEGIN; SELECT nonsense', false],
  ['BEGIN ISOLATION LEVEL SERIALIZABLE; SET LOCAL search_path = pg_catalog', false],
];

export interface Visit {
  /** Places in `habits`. */
  readonly habits: readonly number[];
  readonly table: Table;
  /** Whether the connection is closed as one that was cut. */
  readonly cut: boolean;
}

export async function visit(connection: pg.ClientConfig, account: Account, visit: Visit): Promise<Counts> {
  const client = new pg.Client({ ...connection, query_timeout: 5_000 });
  client.on('error', () => {});
  await client.connect();
  try {
    let canWrite = true;
    for (const place of visit.habits) {
      const [sql, allows] = habits[place] ?? ['', true];
      canWrite &&= allows;
      // In a transaction that failed, and as somebody who may not, some of this fails.
      await client.query(sql).catch(() => {});
    }
    return canWrite ? await write(client, account, visit.table) : [];
  } finally {
    // Where the types of `pg` end, the socket is.
    if (visit.cut)
      (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
    else await client.end();
  }
}
