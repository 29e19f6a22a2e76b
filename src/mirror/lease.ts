/**
 * Leases, by which one run at a time writes an account. A run renews its lease until it ends. A run through details, which may
 * take an hour, gives its lease up to a run through lists, for which a client may be waiting.
 */

import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { inTransaction } from '../database/transaction.ts';
import { SetupError } from '../errors.ts';
import type { Transaction } from './writer.ts';

export interface LeaseOptions {
  /** The account that is written. */
  readonly userId: number;
  /** The unique name of the run, as `holderOf` makes it. */
  readonly holder: string;
  /** How long, in milliseconds, the lease lasts if it is not renewed. */
  readonly duration: number;
}

/** What a run is for. */
export type Purpose = 'lists' | 'details';

export const holderOf = (purpose: Purpose) => `${purpose} ${randomUUID()}`;

/** Thrown when another run has taken over the lease. */
export class LeaseTakenOver extends SetupError {
  override name = 'LeaseTakenOver';
}

export interface Lease {
  /**
   * Runs a transaction during which no other run writes.
   * @throws {LeaseTakenOver} when another run does.
   */
  readonly transaction: Transaction;
  /** Lets other runs write. */
  release(): Promise<void>;
}

/** Takes the lease. Undefined while another run holds it and does not give it up. */
export async function takeLease(
  client: pg.PoolClient,
  { userId, holder, duration }: LeaseOptions,
): Promise<{ sessionsComplete: boolean } | undefined> {
  const { rows } = await client.query<{ sessionsComplete: boolean }>(
    // A locked row belongs to a run that is writing: this waits until it has written.
    `UPDATE "MirroredAccount" SET "heldBy" = $1, "heldUntil" = now() + $2 * interval '1 ms'
     WHERE "userId" = $3 AND ("heldUntil" IS NULL OR "heldUntil" < now()
       OR $1 LIKE 'lists %' AND "heldBy" LIKE 'details %')
     RETURNING "sessionsComplete"`,
    [holder, duration, userId],
  );
  return rows[0];
}

/** Renews a lease until it is released. */
export function holdLease(pool: pg.Pool, { userId, holder, duration }: LeaseOptions): Lease {
  const prolong = (client: pg.Pool | pg.PoolClient) =>
    client.query(
      `UPDATE "MirroredAccount" SET "heldUntil" = now() + $2 * interval '1 ms' WHERE "userId" = $3 AND "heldBy" = $1`,
      [holder, duration, userId],
    );
  const heartbeat = setInterval(() => prolong(pool).catch(() => {}), duration / 3).unref();

  return {
    transaction: (run) =>
      inTransaction(pool, async (client) => {
        const { rowCount } = await prolong(client);
        if (rowCount === 0) throw new LeaseTakenOver('Another run has taken over the account.');
        return run(client);
      }),

    async release() {
      clearInterval(heartbeat);
      // If the database cannot be reached then, the run has ended all the same, and the lease expires.
      await pool
        .query(
          'UPDATE "MirroredAccount" SET "heldBy" = NULL, "heldUntil" = NULL WHERE "userId" = $2 AND "heldBy" = $1',
          [holder, userId],
        )
        .catch(() => {});
    },
  };
}
