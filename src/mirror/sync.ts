/** One run of the synchronisation: learns whose account it is, and brings the mirror to what the upstream has. */

import type pg from 'pg';
import { type Account, type Learn, learnAccount } from './account.ts';
import { anotherAccount, confirmedDetails, confirmedLists, createConfirm } from './confirmed.ts';
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
  /** Whose account it has to be, if that is known. */
  readonly userId?: number;
  /** How it is found out whose account it is, if not by whichever operation tells. */
  readonly learn?: Learn;
  /** Whether to leave the details to another run. */
  readonly listsOnly?: boolean;
  /** As in `OpenMirrorOptions`. */
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
  const { pool, upstream, named, lease, learn = learnAccount } = options;
  const before = upstream.requestCount();
  const began = new Date();
  // The first failure ends the run, and with it the other requests under way.
  const end = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, end.signal]) : end.signal;
  try {
    const { row: account, notes } = await learn(upstream, named, signal);
    if (options.userId !== undefined && account.id !== options.userId) throw anotherAccount();
    const confirm = createConfirm({ upstream, learn, named, signal }, account.id);
    const mirror = await openMirror({ pool, source: upstream.base, account, ...(lease && { lease }) });
    if (!mirror) return undefined;
    try {
      const progress = createProgress();
      const lists = await pullLists(
        { ...options, signal },
        confirmedLists(mirror, confirm),
        account,
        progress,
      );
      if (!options.parts) await mirror.setRefreshed(began);
      const result = options.listsOnly
        ? lists
        : await pullDetails({ ...options, signal }, confirmedDetails(mirror, confirm), account, progress);
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

/** Reads the details that are still to be read of an account whose lists are here, unless another run is under way. */
export async function syncDetails(
  options: Pick<PullAccountOptions, 'upstream' | 'signal' | 'unreadable' | 'mayDeny'> & {
    readonly pool: pg.Pool;
    readonly account: Account;
    readonly learn: Learn;
  },
): Promise<void> {
  const { pool, upstream, account, learn } = options;
  const end = new AbortController();
  const signal = AbortSignal.any([options.signal, end.signal]);
  const mirror = await openMirror({ pool, source: upstream.base, account });
  try {
    if (!mirror) return;
    const confirm = createConfirm({ upstream, learn, signal }, account.id);
    await pullDetails({ ...options, signal }, confirmedDetails(mirror, confirm), account);
  } finally {
    // As in `sync`.
    end.abort();
    await mirror?.release();
  }
}
