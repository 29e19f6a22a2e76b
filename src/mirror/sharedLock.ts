/**
 * Turns of those who write what the accounts of a mirror share: templates, which one owns and others import, and names,
 * which no two have. Each sees what the one before has left.
 */

import type pg from 'pg';

/** The key of the lock. No other advisory lock of the gateway has this number. */
const sharedLock = 0xd07e7a13;

/** Waits for the others to be done. The turn ends with the transaction. */
export async function acquireSharedLock(client: pg.PoolClient): Promise<void> {
  await client.query('SELECT pg_advisory_xact_lock($1)', [sharedLock]);
}
