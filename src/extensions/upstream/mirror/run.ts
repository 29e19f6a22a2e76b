/**
 * What the parts of one run through an account share, and the lease under which it writes: only the run that holds the lease of an account
 * writes it, and it renews its lease until it ends. A run through details, which may take an hour, loses its lease to a run through lists,
 * for which a client may be waiting.
 */

import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { inTransaction, type Transaction } from '../../../database/transaction.ts';
import { SetupError } from '../../../errors.ts';
import { AnotherAccount, type Upstream } from '../client/upstream.ts';
import { type Account, readAccountId } from './account.ts';
import { kindsOf } from './kinds.ts';
import { createRunReport, type OnProgress } from './report.ts';

export interface RunOptions {
  readonly pool: pg.Pool;
  /** A client that only this run uses. */
  readonly upstream: Upstream;
  readonly signal?: AbortSignal;
  /** Whether to read all sessions, and details of records that have not changed. Otherwise sessions are read only as far as they are new. */
  readonly full?: boolean;
  readonly onProgress?: OnProgress;
  /** The mark of the last write before the run, which it reads back. */
  readonly mark?: number | undefined;
}

type UnleasedRun = ReturnType<typeof createRun>;

export interface Run extends UnleasedRun {
  /** Begins a transaction. It fails if another run has taken over. */
  readonly transaction: Transaction;
}

export function createRun(options: RunOptions, account: Account) {
  const { upstream, signal = new AbortController().signal, full = false } = options;
  let confirmedAt = upstream.requestCount();
  return {
    ...options,
    signal,
    full,
    account,
    kinds: kindsOf(account.id),
    report: createRunReport(),
    /**
     * Asks the upstream again for the user of the token. Must be called before records are removed, or written without an owner in
     * them: the token may become that of another account during the run. @throws {AnotherAccount} if it has.
     */
    async confirm(): Promise<void> {
      // Nothing was read since the last confirmation.
      if (upstream.requestCount() === confirmedAt) return;
      if ((await readAccountId(upstream, signal)) !== account.id) throw anotherAccount();
      confirmedAt = upstream.requestCount();
    },
  };
}

export const anotherAccount = () =>
  new AnotherAccount('The token opens another account than it did.', {
    failure: 'says that a token belongs to another user',
  });

type Purpose = 'lists' | 'details';

/** Thrown in a transaction when another run has taken over the lease. */
class LeaseTakenOver extends SetupError {
  override name = 'LeaseTakenOver';
}

/** How long, in milliseconds, a lease lasts if it is not renewed. */
const usualDuration = 30_000;

/** Whether an account is leased. A lease that ends too late does not count: the clock was set back after it was taken. */
export const isHeld = `coalesce("heldUntil" BETWEEN now() AND now() + interval '1 min', false)`;

/**
 * Runs a function under the lease of an account.
 * @param run called with a function that runs transactions. They fail once another run has taken over the lease.
 * @returns false if another run holds the lease and keeps it, or if another run has taken over a lease for details.
 */
export async function whileLeased(
  pool: pg.Pool,
  userId: number,
  purpose: Purpose,
  run: (transaction: Transaction) => Promise<void>,
  duration = usualDuration,
): Promise<boolean> {
  const holder = `${purpose} ${randomUUID()}`;
  const until = "now() + $3 * interval '1 ms'";
  const { rowCount: taken } = await pool.query(
    // A locked row belongs to a run that is writing: this waits until it has written.
    `UPDATE "MirroredAccount" SET "heldBy" = $2, "heldUntil" = ${until}
     WHERE "userId" = $1 AND (NOT ${isHeld} OR $2 LIKE 'lists %' AND "heldBy" LIKE 'details %')`,
    [userId, holder, duration],
  );
  if (taken === 0) return false;
  const renew = async (client: pg.Pool | pg.PoolClient) => {
    const { rowCount } = await client.query(
      `UPDATE "MirroredAccount" SET "heldUntil" = ${until} WHERE "userId" = $1 AND "heldBy" = $2`,
      [userId, holder, duration],
    );
    if (rowCount === 0) throw new LeaseTakenOver('Another run has taken over the account.');
  };
  const renewal = setInterval(() => renew(pool).catch(() => {}), duration / 3).unref();
  try {
    await run((write) =>
      inTransaction(pool, async (client) => {
        await renew(client);
        return write(client);
      }),
    );
    return true;
  } catch (error) {
    if (error instanceof LeaseTakenOver && purpose === 'details') return false;
    throw error;
  } finally {
    clearInterval(renewal);
    // If the database cannot be reached, the lease expires by itself.
    await pool
      .query(
        'UPDATE "MirroredAccount" SET "heldBy" = NULL, "heldUntil" = NULL WHERE "userId" = $1 AND "heldBy" = $2',
        [userId, holder],
      )
      .catch(() => {});
  }
}

/** Runs a function under the lease of the account of a run. Returns whether it took place, and was not taken over. */
export const leased = (
  run: UnleasedRun,
  purpose: Purpose,
  read: (run: Run) => Promise<void>,
): Promise<boolean> =>
  whileLeased(run.pool, run.account.id, purpose, (transaction) => read({ ...run, transaction }));
