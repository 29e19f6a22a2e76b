/** The runs that synchronise an account, and their log lines. */

import type pg from 'pg';
import type { Logger } from 'pino';
import type { Upstream } from '../upstream/upstream.ts';
import type { Account, IdentifyAccount } from './account.ts';
import { kindsOf } from './kinds.ts';
import type { FailedDetails } from './pullDetails.ts';
import { describeChanges } from './report.ts';
import { type SyncOptions, type SyncReport, sync, syncDetails } from './sync.ts';

export interface RunsOptions {
  readonly pool: pg.Pool;
  readonly userId: number;
  readonly logger: Logger;
  /** The advice that is logged once the account has been read. */
  readonly next: string | undefined;
  readonly identify: IdentifyAccount;
}

const sessions = kindsOf(0).dttSessions.name;

export type AccountRuns = ReturnType<typeof createRuns>;

/** The runs of an account. Of each kind one runs at a time, in all processes over the database. */
export function createRuns({ pool, userId, logger, next, identify }: RunsOptions) {
  let isInStep = false;
  /** As the last run found it. */
  let account: Account | undefined;
  const failed: FailedDetails = new Map();
  const leftOut = createLeftOut(logger);
  return {
    /**
     * Reads lists. Returns when it began by the database's clock, or undefined while another process reads them.
     * @param what as in `SyncOptions`; `advanced` is called with the number of records read so far.
     */
    async lists(
      upstream: Upstream,
      signal: AbortSignal,
      { advanced, ...what }: Pick<SyncOptions, 'parts' | 'mark'> & { advanced(records: number): void },
    ): Promise<{ readonly began: number } | undefined> {
      const listener = createCounter(advanced);
      const options = { pool, upstream, userId, identify, signal, listener, listsOnly: true, ...what };
      const report = await sync(options);
      if (!report) return undefined;
      account = report.account;
      // Not logged here, since they contain ids and values: `dovetail sync` prints them.
      const { requests, notes, countsByKind, began } = report;
      leftOut.noteLists(countsByKind);
      if (notes.length > 0) logger.debug({ notes: notes.length }, 'mirror differs');
      if (!isInStep) logger.info({ ...(next !== undefined && { next }) }, 'mirror in step');
      isInStep = true;
      const changes = describeChanges(report);
      if (changes !== undefined) logger.info({ changes, requests }, 'mirror refreshed');
      return { began: began.getTime() };
    },
    /** Reads pending details until there are none, or the signal is aborted. */
    async details(upstream: Upstream, signal: AbortSignal): Promise<void> {
      if (!account) return;
      await syncDetails({ pool, upstream, account, identify, signal, failed });
      leftOut.noteDetails(failed.size);
    },
    /** How many records of the upstream are left out: they could not be understood, or are not the account's. */
    skipped: leftOut.count,
  };
}

/** Counts the records that were read, over all kinds. */
function createCounter(advanced: (records: number) => void) {
  const fetched = new Map<string, number>();
  return {
    advanced(kind: string, count: number): void {
      fetched.set(kind, count);
      advanced([...fetched.values()].reduce((sum, each) => sum + each, 0));
    },
  };
}

/** Counts the records that are left out, and logs the count when it changes. */
function createLeftOut(logger: Logger) {
  const lists = new Map<string, number>();
  let details = 0;
  let told = 0;
  const count = () => [...lists.values()].reduce((sum, each) => sum + each, details);
  function tell(): void {
    if (count() !== told) logger.warn({ records: count() }, 'records of the upstream are left out');
    told = count();
  }
  return {
    count,
    noteLists(countsByKind: SyncReport['countsByKind']): void {
      // A run reads only the newest sessions: those that an earlier run left out are still left out.
      for (const [kind, { skipped }] of countsByKind)
        lists.set(kind, kind === sessions ? Math.max(skipped, lists.get(kind) ?? 0) : skipped);
      tell();
    },
    noteDetails(failed: number): void {
      details = failed;
      tell();
    },
  };
}
