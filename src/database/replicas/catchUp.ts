/**
 * A standby may show what its primary does not yet: there a commit is seen only when its process has come so far, which
 * with a synchronous standby takes until that one has said that it has it. Whoever reads on the primary after they read
 * on a standby must not miss what they have seen.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { clientError, messages } from '../../errors.ts';
import type { Sql } from '../reader/sql.ts';
import type { Standby } from './standby.ts';

/** How long, in milliseconds, it is waited for the primary to show it, and how long between two looks. */
const longest = 2_000;
const pause = 5;

/** After so long, in milliseconds, a commit that a standby has shown has ended, or waits for another standby. */
const longestUnknown = 500;

/** Transactions below the bound that the primary does not show the end of. What never began is not below it. */
const open = `WITH now AS MATERIALIZED (SELECT pg_current_snapshot() AS seen)
  SELECT id::text FROM now, LATERAL (
    SELECT pg_snapshot_xip(seen)::text::bigint AS id
    UNION ALL SELECT generate_series(pg_snapshot_xmax(seen)::text::bigint, $1::bigint - 1)
  ) found WHERE id < $1::bigint`;

const stillOpen = `SELECT id FROM unnest($1::text[]) AS id
  WHERE NOT pg_visible_in_snapshot(id::xid8, pg_current_snapshot())`;

/**
 * Those that wait for a synchronous standby with their commit: which one, only some roles may see. The server tells the
 * lower half of their numbers.
 */
const waiting = `SELECT id FROM unnest($1::text[]) AS id WHERE EXISTS (
  SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND backend_xid::text::bigint = id::bigint & 4294967295)`;

interface Transaction {
  readonly id: string;
}

/**
 * Waits until the primary shows everything that the standby has shown to anybody until now.
 * @throws SERVICE_UNAVAILABLE when it does not in time.
 */
export async function catchUp(primary: Pick<Sql, 'run'>, standby: Standby): Promise<void> {
  const began = performance.now();
  const bound = await standby.refresh().catch(() => undefined);
  const idsOf = async (text: string, value: unknown) =>
    (await primary.run<Transaction>(text, [value])).map(({ id }) => id);
  // Of one that is gone, nothing can have shown what has not begun by now.
  let left = await idsOf(open, String(bound ?? (await nextTransaction(primary))));
  if (left.length === 0) return;
  const shown = bound === undefined ? undefined : await standby.committedOf(left).catch(() => undefined);
  left = shown ?? left;
  while (left.length > 0) {
    const waited = performance.now() - began;
    // What still runs then has shown nothing.
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
