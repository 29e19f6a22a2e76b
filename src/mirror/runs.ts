/** The runs that synchronise an account, and their log lines. */

import type pg from 'pg';
import type { Logger } from 'pino';
import type { Upstream } from '../upstream/upstream.ts';
import type { Account, IdentifyAccount } from './account.ts';
import { kindsOf } from './kinds.ts';
import type { FailedDetails } from './pullDetails.ts';
import { countChanges } from './report.ts';
import { type SyncOptions, sync, syncDetails } from './sync.ts';

export interface RunsOptions {
  readonly pool: pg.Pool;
  readonly userId: number;
  readonly logger: Logger;
  readonly identify: IdentifyAccount;
}

const sessions = kindsOf(0).dttSessions.name;

const sumOf = (counts: ReadonlyMap<string, number>) =>
  [...counts.values()].reduce((sum, count) => sum + count, 0);

export type AccountRuns = ReturnType<typeof createRuns>;

/** The runs of an account. One run of each kind at a time, in all processes over the database. */
export function createRuns({ pool, userId, logger, identify }: RunsOptions) {
  let isInStep = false;
  /** The account as the last run has read it. */
  let account: Account | undefined;
  /** How many records of each list the last run has read. */
  const fetched = new Map<string, number>();
  /** The skipped records of each list; the details that could not be read, and how many they were after the last run. */
  const skippedOfLists = new Map<string, number>();
  const failed: FailedDetails = new Map();
  let skippedDetails = 0;
  return {
    /**
     * Reads lists. Returns when all were last read, as in `StoredFreshness`, or undefined while another process reads them.
     * @param what as in `SyncOptions`.
     */
    async lists(
      upstream: Upstream,
      signal: AbortSignal,
      what: Pick<SyncOptions, 'parts' | 'mark'>,
    ): Promise<number | undefined> {
      fetched.clear();
      const onProgress = (kind: string, count: number) => void fetched.set(kind, count);
      const options = { pool, upstream, userId, identify, signal, onProgress, listsOnly: true, ...what };
      const report = await sync(options);
      if (!report) return undefined;
      account = report.account;
      // Its notes have ids and values, so they are not logged. `dovetail sync` prints them.
      const { requests, countsByKind, refreshedAt } = report;
      for (const [kind, counts] of countsByKind) {
        // A run reads only the newest sessions: those that an earlier run left out are still left out.
        const before = kind === sessions ? skippedOfLists.get(kind) : undefined;
        skippedOfLists.set(kind, Math.max(counts.skipped, before ?? 0));
      }
      if (!isInStep) logger.info('mirror in step');
      isInStep = true;
      const changes = countChanges(report);
      if (changes > 0) logger.info({ changes, requests }, 'mirror refreshed');
      return refreshedAt;
    },
    /** Reads pending details until there are none, or the signal is aborted. */
    async details(upstream: Upstream, signal: AbortSignal): Promise<void> {
      if (!account) return;
      await syncDetails({ pool, upstream, account, identify, signal, failed });
      skippedDetails = failed.size;
    },
    progress: () => sumOf(fetched),
    /** How many records of the upstream are left out: they could not be read, or belong to another account. */
    skipped: () => sumOf(skippedOfLists) + skippedDetails,
  };
}
