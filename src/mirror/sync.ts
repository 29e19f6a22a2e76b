/** One run of the synchronisation: learns whose account it is, and brings the mirror to what the upstream has. */

import type pg from 'pg';
import { type Account, learnAccount } from './account.ts';
import { openMirror } from './mirror.ts';
import { type PullAccountOptions, type Pulled, pullAccount } from './pullAccount.ts';
import { AnotherAccount } from './upstream.ts';

export interface SyncOptions extends Omit<PullAccountOptions, 'signal'> {
  readonly pool: pg.Pool;
  readonly signal?: AbortSignal;
  /** Whose account it has to be, if that is known. */
  readonly userId?: number;
  /** As in `MirrorOptions`. */
  readonly lease?: number;
}

export interface SyncReport extends Pulled {
  readonly account: Account;
  readonly began: Date;
  /** How many requests it took. */
  readonly requests: number;
}

/**
 * Brings the mirror to what the upstream has, or returns undefined while another run is under way.
 * @throws {UpstreamError} when the upstream cannot be used, {SetupError} when the database cannot.
 */
export async function sync(options: SyncOptions): Promise<SyncReport | undefined> {
  const { pool, upstream, named, lease } = options;
  const before = upstream.requestCount();
  const began = new Date();
  // The first failure ends the run, and with it the other requests under way.
  const end = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, end.signal]) : end.signal;
  try {
    const { row: account, notes } = await learnAccount(upstream, named, signal);
    if (options.userId !== undefined && account.id !== options.userId)
      throw new AnotherAccount('The token opens another account than it did.', {
        failure: 'answers another user for a token',
      });
    const mirror = await openMirror({ pool, source: upstream.base, account, ...(lease && { lease }) });
    if (!mirror) return undefined;
    try {
      const result = await pullAccount({ ...options, signal }, mirror, account);
      await mirror.setRefreshed(began);
      return {
        ...result,
        notes: [...notes, ...result.notes],
        account,
        began,
        requests: upstream.requestCount() - before,
      };
    } finally {
      await mirror.release();
    }
  } finally {
    end.abort();
  }
}
