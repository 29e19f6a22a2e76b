/** One run of the synchronisation: learns whose account it is, and brings the mirror to what the upstream has. */

import type pg from 'pg';
import { type Account, learnAccount } from './account.ts';
import { openMirror } from './mirror.ts';
import {
  createProgress,
  type PullAccountOptions,
  type Pulled,
  pullDetails,
  pullLists,
} from './pullAccount.ts';

export interface SyncOptions extends Omit<PullAccountOptions, 'signal'> {
  readonly pool: pg.Pool;
  readonly signal?: AbortSignal;
  /** As in `MirrorOptions`. */
  readonly lease?: number;
}

export interface SyncReport extends Pulled {
  readonly account: Account;
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
    const mirror = await openMirror({ pool, source: upstream.base, account, ...(lease && { lease }) });
    if (!mirror) return undefined;
    try {
      const progress = createProgress();
      await pullLists({ ...options, signal }, mirror, account, progress);
      await mirror.setRefreshed(began);
      const result = await pullDetails({ ...options, signal }, mirror, account, progress);
      return {
        ...result,
        notes: [...notes, ...result.notes],
        account,
        requests: upstream.requestCount() - before,
      };
    } finally {
      await mirror.release();
    }
  } finally {
    end.abort();
  }
}
