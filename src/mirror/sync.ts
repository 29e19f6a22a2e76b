/** One synchronisation run: finds out whose account it is, and updates the mirror to what the upstream has. */

import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { type Account, type IdentifyAccount, identifyByAnyRoute } from './account.ts';
import {
  anotherAccount,
  type Confirm,
  confirmedDetails,
  confirmedLists,
  createConfirm,
} from './confirmed.ts';
import { LeaseTakenOver } from './lease.ts';
import { openMirror } from './mirror.ts';
import {
  createProgress,
  type PullAccountOptions,
  type Pulled,
  pullDetails,
  pullLists,
  type RunProgress,
} from './pullAccount.ts';
import { readDatabaseTime } from './storedFreshness.ts';

export interface SyncOptions extends Omit<PullAccountOptions, 'signal'> {
  readonly pool: pg.Pool;
  readonly signal?: AbortSignal;
  /** The account that the token has to belong to, if that is known. */
  readonly userId?: number;
  /** Finds out whose account it is; by any operation that tells, unless given. */
  readonly identify?: IdentifyAccount;
  /** Whether to leave the details to another run. */
  readonly listsOnly?: boolean;
  /** As in `OpenMirrorOptions`. */
  readonly lease?: number;
}

export interface SyncReport extends Pulled {
  readonly account: Account;
  /** By the database's clock. */
  readonly began: Date;
  /** How many requests the run took. */
  readonly requests: number;
}

/**
 * Updates the mirror to what the upstream has. Returns undefined while another run is under way.
 * @throws {UpstreamError} when the upstream cannot be used, {SetupError} when the database cannot.
 */
export async function sync(options: SyncOptions): Promise<SyncReport | undefined> {
  const { pool, upstream, named, lease, identify = identifyByAnyRoute } = options;
  const before = upstream.requestCount();
  const began = await readDatabaseTime(pool);
  // The first failure ends the run, and aborts its other requests.
  const end = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, end.signal]) : end.signal;
  try {
    const { row: account, notes } = await identify(upstream, named, signal);
    if (options.userId !== undefined && account.id !== options.userId) throw anotherAccount();
    const confirm = createConfirm({ upstream, identify, named, signal }, account.id);
    const mirror = await openMirror({ pool, source: upstream.base, account, ...(lease && { lease }) });
    if (!mirror) return undefined;
    const progress = createProgress();
    let result: Pulled;
    try {
      result = await pullLists({ ...options, signal }, confirmedLists(mirror, confirm), account, progress);
      if (!options.parts) await mirror.setRefreshed(began);
    } finally {
      await mirror.release();
    }
    if (!options.listsOnly)
      result = await readAllDetails(
        { unreadable: new Map(), ...options, signal, account, confirm },
        progress,
      );
    return {
      ...result,
      notes: [...notes, ...result.notes],
      account,
      began,
      requests: upstream.requestCount() - before,
    };
  } finally {
    end.abort();
  }
}

/** Reads the pending details of an account whose lists are here, unless another run is under way. */
export async function syncDetails(
  options: Omit<DetailsOptions, 'confirm'> & { readonly identify: IdentifyAccount },
): Promise<void> {
  const { upstream, account, identify } = options;
  const end = new AbortController();
  const signal = AbortSignal.any([options.signal, end.signal]);
  const confirm = createConfirm({ upstream, identify, signal }, account.id);
  try {
    await readDetails({ ...options, signal, confirm });
  } finally {
    // As in `sync`.
    end.abort();
  }
}

interface DetailsOptions extends PullAccountOptions {
  readonly pool: pg.Pool;
  readonly account: Account;
  readonly confirm: Confirm;
  /** As in `OpenMirrorOptions`. */
  readonly lease?: number;
}

/** How often, in milliseconds, it is checked whether another run has ended. */
const pollInterval = 1_000;

/** Reads details until none are pending, also if other processes read some of them. */
async function readAllDetails(options: DetailsOptions, progress: RunProgress): Promise<Pulled> {
  for (;;) {
    const pulled = await readDetails(options, progress);
    if (pulled) return pulled;
    await sleep(pollInterval, undefined, { signal: options.signal });
  }
}

/** Reads details. Undefined if another run is under way, or has taken over the lease. */
async function readDetails(options: DetailsOptions, progress?: RunProgress): Promise<Pulled | undefined> {
  const { pool, upstream, account, confirm, lease } = options;
  const purpose = 'details';
  const mirror = await openMirror({ pool, source: upstream.base, account, purpose, ...(lease && { lease }) });
  if (!mirror) return undefined;
  try {
    return await pullDetails(options, confirmedDetails(mirror, confirm), account, progress);
  } catch (error) {
    if (error instanceof LeaseTakenOver) return undefined;
    throw error;
  } finally {
    await mirror.release();
  }
}
