/**
 * Lets one run at a time write an account: a run holds a lease, and prolongs it for as long as it goes on. One that reads
 * details, which may take an hour, makes way for one that reads lists, for which somebody may be waiting.
 */

import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { inTransaction } from '../database/transaction.ts';
import { SetupError } from '../errors.ts';
import type { Transaction } from './writer.ts';

export interface LeaseOptions {
  /** Whose account is written. */
  readonly userId: number;
  /** What no other run is called, as `holderOf` gives it. */
  readonly holder: string;
  /** How long, in milliseconds, it lasts if it is not prolonged. */
  readonly duration: number;
}

/** What a run is for. */
export type Purpose = 'lists' | 'details';

export const holderOf = (purpose: Purpose) => `${purpose} ${randomUUID()}`;

/** Another run writes the account now. */
export class TakenOver extends SetupError {
  override name = 'TakenOver';
}

export interface Lease {
  /**
   * A transaction in which no other run writes.
   * @throws {TakenOver} when another run does.
   */
  readonly transaction: Transaction;
  /** Lets other runs write. */
  release(): Promise<void>;
}

/** Takes the lease. Undefined while another run holds it that does not make way. */
export async function takeLease(
  client: pg.PoolClient,
  { userId, holder, duration }: LeaseOptions,
): Promise<{ sessionsComplete: boolean } | undefined> {
  const { rows } = await client.query<{ sessionsComplete: boolean }>(
    // A row that is locked is that of a run which is writing: what it writes is waited for.
    `UPDATE "MirroredAccount" SET "heldBy" = $1, "heldUntil" = now() + $2 * interval '1 ms'
     WHERE "userId" = $3 AND ("heldUntil" IS NULL OR "heldUntil" < now()
       OR $1 LIKE 'lists %' AND "heldBy" LIKE 'details %')
     RETURNING "sessionsComplete"`,
    [holder, duration, userId],
  );
  return rows[0];
}

/** Prolongs a lease that was taken, until it is released. */
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
        if (rowCount === 0) throw new TakenOver('Another run has taken over the account.');
        return run(client);
      }),

    async release() {
      clearInterval(heartbeat);
      // A database that is away then does not change how the run ended: the lease runs out by itself.
      await pool
        .query(
          'UPDATE "MirroredAccount" SET "heldBy" = NULL, "heldUntil" = NULL WHERE "userId" = $2 AND "heldBy" = $1',
          [holder, userId],
        )
        .catch(() => {});
    },
  };
}
