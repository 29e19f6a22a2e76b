/** Guests, which are clients of the embedded engine other than the gateway: how they change their session, and how they end it. */

import pg from 'pg';
import type { Account } from '../support/accounts.ts';
import type { Counts } from './floor.ts';
import { type Table, write } from './writes.ts';

/** Statements by which guests change their session, and whether they can write afterwards. */
export const sessionStatements: readonly (readonly [sql: string, canWrite: boolean])[] = [
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
  // Transactions that are left open, and rolled back.
  ['BEGIN; UPDATE public."DttTemplate" SET name = (name::int + 1)::text', false],
  ['BEGIN; SELECT nonsense', false],
  ['BEGIN ISOLATION LEVEL SERIALIZABLE; SET LOCAL search_path = pg_catalog', false],
];

export interface Visit {
  /** Indices in the list above. */
  readonly statements: readonly number[];
  readonly table: Table;
  /** Whether the connection is cut instead of closed properly. */
  readonly cut: boolean;
}

export async function visit(connection: pg.ClientConfig, account: Account, visit: Visit): Promise<Counts> {
  const client = new pg.Client({ ...connection, query_timeout: 5_000 });
  client.on('error', () => {});
  await client.connect();
  try {
    let canWrite = true;
    for (const place of visit.statements) {
      const [sql, allows] = sessionStatements[place] ?? ['', true];
      canWrite &&= allows;
      // In a failed transaction, or without the rights, some of these fail.
      await client.query(sql).catch(() => {});
    }
    return canWrite ? await write(client, account, visit.table) : [];
  } finally {
    // The socket is not in the types of `pg`.
    if (visit.cut)
      (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
    else await client.end();
  }
}
