/**
 * A standby may show a commit before the primary does: the primary shows it when the process that commits has finished,
 * which with synchronous replication waits for the standby. A viewer who reads on the primary after reading on a standby
 * must still see everything, so this module waits until the primary shows it.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { clientError, messages } from '../../errors.ts';
import type { Sql } from '../reader/sql.ts';
import type { Standby } from './standby.ts';

/** How long to wait for the primary, and how long between two checks, both in milliseconds. */
const longest = 2_000;
const pause = 5;

/** After so many milliseconds, a commit that a standby has shown is finished, or waits for synchronous replication. */
const longestUnknown = 500;

/** The transactions with ids below the bound that have not ended on the primary. */
const open = `WITH now AS MATERIALIZED (SELECT pg_current_snapshot() AS seen)
  SELECT id::text FROM now, LATERAL (
    SELECT pg_snapshot_xip(seen)::text::bigint AS id
    UNION ALL SELECT generate_series(pg_snapshot_xmax(seen)::text::bigint, $1::bigint - 1)
  ) found WHERE id < $1::bigint`;

const stillOpen = `SELECT id FROM unnest($1::text[]) AS id
  WHERE NOT pg_visible_in_snapshot(id::xid8, pg_current_snapshot())`;

/**
 * The transactions whose commit waits for synchronous replication. The view has the lower 32 bits of their ids. A COMMIT
 * PREPARED waits without an id, and may commit any prepared transaction. Which standby they wait for is visible to some
 * roles only.
 */
const waiting = `SELECT id FROM unnest($1::text[]) AS id, LATERAL (SELECT id::bigint & 4294967295) AS lower(half)
  WHERE EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND CASE WHEN backend_xid IS NULL
    THEN half IN (SELECT transaction::text::bigint FROM pg_prepared_xacts) ELSE backend_xid::text::bigint = half END)`;

interface Transaction {
  readonly id: string;
}

/**
 * Waits until the primary shows everything that the standby has shown to anybody until now.
 * @throws SERVICE_UNAVAILABLE when the primary does not show it in time.
 */
export async function catchUp(primary: Pick<Sql, 'run'>, standby: Standby): Promise<void> {
  const began = performance.now();
  const bound = await standby.refresh().catch(() => undefined);
  const idsOf = async (text: string, value: unknown) =>
    (await primary.run<Transaction>(text, [value])).map(({ id }) => id);
  // A standby that is gone can have shown only transactions that have begun by now.
  let left = await idsOf(open, String(bound ?? (await nextTransaction(primary))));
  if (left.length === 0) return;
  const shown = bound === undefined ? undefined : await standby.committedOf(left).catch(() => undefined);
  left = shown ?? left;
  while (left.length > 0) {
    const waited = performance.now() - began;
    // A transaction that still runs by then has not been shown by a standby.
    if (!shown && waited > longestUnknown) left = await idsOf(waiting, left);
    if (left.length === 0) return;
    if (waited > longest) throw clientError('SERVICE_UNAVAILABLE', messages.primaryBehind, { retryAfter: 1 });
    await sleep(pause);
    left = await idsOf(stillOpen, left);
  }
}

async function nextTransaction(primary: Pick<Sql, 'run'>): Promise<string> {
  const [row] = await primary.run<Transaction>('SELECT pg_current_xact_id()::text AS id', []);
  return row?.id ?? '0';
}
