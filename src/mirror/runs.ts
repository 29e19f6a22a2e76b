/** The runs that synchronise an account, and their log lines. */

import type pg from 'pg';
import type { Logger } from 'pino';
import type { Account, IdentifyAccount } from './account.ts';
import { noteChanged, readAgain } from './details.ts';
import { kindsOf } from './kinds/kinds.ts';
import type { AccountRuns } from './mirroredAccount.ts';
import type { FailedDetails } from './pullDetails.ts';
import { endsRun } from './removals.ts';
import { describeChanges } from './report.ts';
import { type SyncReport, sync, syncDetails } from './sync.ts';

export interface RunsOptions {
  readonly pool: pg.Pool;
  readonly userId: number;
  readonly logger: Logger;
  /** The advice that is logged once the account has been read. */
  readonly next: string | undefined;
  readonly identify: IdentifyAccount;
}

const sessions = kindsOf(0).dttSessions.name;

export function createRuns({ pool, userId, logger, next, identify }: RunsOptions): AccountRuns {
  let isInStep = false;
  /** As the last run found it. */
  let account: Account | undefined;
  const failed: FailedDetails = new Map();
  const leftOut = createLeftOut(logger);
  return {
    async lists(upstream, signal, advanced, parts) {
      const listener = createCounter(advanced);
      const options = { pool, upstream, userId, identify, signal, listener, listsOnly: true, parts };
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
      return { began: began.getTime(), isPart: parts !== undefined };
    },
    async details(upstream, signal) {
      if (!account) return;
      await syncDetails({ pool, upstream, account, identify, signal, failed });
      leftOut.noteDetails(failed.size);
    },
    noteChanged: (session) => noteChanged(pool, userId, session),
    async session(upstream, { id, isDeleted }) {
      try {
        await readAgain({ pool, upstream, accountId: userId }, id, isDeleted);
      } catch (error) {
        // Its details stay pending. One session that cannot be read must not keep out all lists.
        if (endsRun(error)) throw error;
      }
    },
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
