/**
 * What the parts of one run through an account share, and the lease under which it writes lists: only the run that holds the lease of an
 * account writes them, and it renews its lease until it ends.
 */

import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { inTransaction, type Transaction } from '../../../database/transaction.ts';
import { SetupError } from '../../../errors.ts';
import { AnotherAccount, type Upstream } from '../client/upstream.ts';
import { type Account, readAccountId } from './account.ts';

export interface RunOptions {
  readonly pool: pg.Pool;
  /** A client that only this run uses. */
  readonly upstream: Upstream;
  readonly signal?: AbortSignal;
  /** Whether to read all sessions, and details of records that have not changed. Otherwise sessions are read only as far as they are new. */
  readonly full?: boolean;
  /** Gets what the run has done so far. */
  readonly report?: RunReport;
  /** The mark of the last write before the run, which it reads back. */
  readonly mark?: number | undefined;
}

interface RecordCounts {
  fetched: number;
  written: number;
  gone: number;
  skipped: number;
}

export type RunReport = ReturnType<typeof createRunReport>;

export function createRunReport() {
  const countsByKind = new Map<string, RecordCounts>();
  const notes: string[] = [];

  function countsOf(kind: string): RecordCounts {
    const counts = countsByKind.get(kind) ?? { fetched: 0, written: 0, gone: 0, skipped: 0 };
    countsByKind.set(kind, counts);
    return counts;
  }
  return {
    countsByKind,
    countsOf,
    /** How many records it has read so far. */
    fetched: () => [...countsByKind.values()].reduce((sum, { fetched }) => sum + fetched, 0),
    notes,
    skip(kind: string, where: string, why: string): void {
      countsOf(kind).skipped++;
      notes.push(`${where}: ${why}; skipped.`);
    },
  };
}

export type Run = ReturnType<typeof createRun>;

export function createRun(options: RunOptions, account: Account) {
  const { pool, upstream, signal = new AbortController().signal, full = false } = options;
  const { report = createRunReport() } = options;
  let confirmedAt = upstream.requestCount();
  const transaction: Transaction = (write) => inTransaction(pool, write);
  return {
    ...options,
    transaction,
    signal,
    full,
    account,
    report,
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

/** How long, in milliseconds, a lease lasts if it is not renewed. */
const usualDuration = 30_000;

/** Whether an account is leased. A lease that ends too late does not count: the clock was set back after it was taken. */
export const isHeld = `coalesce("heldUntil" BETWEEN now() AND now() + interval '1 min', false)`;

/**
 * Runs a function under the lease of an account.
 * @param run called with a function that runs transactions. They fail once another run has taken the lease, which had expired.
 * @returns false if another run holds the lease.
 */
export async function whileLeased(
  pool: pg.Pool,
  userId: number,
  run: (transaction: Transaction) => Promise<void>,
  duration = usualDuration,
): Promise<boolean> {
  const holder = randomUUID();
  const hold = async (client: pg.Pool | pg.PoolClient, condition: string): Promise<boolean> => {
    const { rowCount } = await client.query(
      `UPDATE "MirroredAccount" SET "heldBy" = $2, "heldUntil" = now() + $3 * interval '1 ms'
       WHERE "userId" = $1 AND ${condition}`,
      [userId, holder, duration],
    );
    return rowCount === 1;
  };
  const isOwn = '"heldBy" = $2';
  // A locked row belongs to a run that is writing: this waits until it has written.
  if (!(await hold(pool, `NOT ${isHeld}`))) return false;
  const renewal = setInterval(() => hold(pool, isOwn).catch(() => {}), duration / 3).unref();
  try {
    await run((write) =>
      inTransaction(pool, async (client) => {
        if (!(await hold(client, isOwn))) throw new SetupError('Another run has taken over the account.');
        return write(client);
      }),
    );
    return true;
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
