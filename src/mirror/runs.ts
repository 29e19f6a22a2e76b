/** The runs that keep an account in step, and what the log says of them. */

import type { LimitFunction } from 'p-limit';
import type pg from 'pg';
import type { Logger } from 'pino';
import type { Account } from './account.ts';
import { readRefreshedAt } from './mirror.ts';
import type { AccountRuns } from './mirroredAccount.ts';
import { describeChanges } from './report.ts';
import { sync, syncDetails } from './sync.ts';

export interface RunsOptions {
  readonly pool: pg.Pool;
  readonly userId: number;
  readonly logger: Logger;
  /** What to do once the account is in step, for whoever reads the log. */
  readonly next: string | undefined;
  /** Has the runs of all accounts take turns. */
  readonly inTurn: LimitFunction;
}

export function createRuns({ pool, userId, logger, next, inTurn }: RunsOptions): AccountRuns {
  let isInStep = false;
  /** How many records the last run left out. */
  let leftOut = 0;
  /** As the last run found it. */
  let account: Account | undefined;
  return {
    async lists(upstream, signal, advanced) {
      const fetched = new Map<string, number>();
      const listener = {
        advanced(kind: string, count: number) {
          fetched.set(kind, count);
          advanced([...fetched.values()].reduce((sum, each) => sum + each, 0));
        },
      };
      const report = await inTurn(() => sync({ pool, upstream, userId, signal, listener, listsOnly: true }));
      if (!report) return undefined;
      // What they say has ids and values in it: `dovetail sync` prints them.
      const { requests, notes, skipped } = report;
      account = report.account;
      if (skipped !== leftOut) logger.warn({ records: skipped }, 'records of the upstream are left out');
      leftOut = skipped;
      if (notes.length > 0) logger.debug({ notes: notes.length }, 'mirror differs');
      if (!isInStep) logger.info({ ...(next !== undefined && { next }) }, 'mirror in step');
      isInStep = true;
      const changes = describeChanges(report);
      if (changes !== undefined) logger.info({ changes, requests }, 'mirror refreshed');
      return { began: report.began.getTime(), hasChanges: changes !== undefined, skipped };
    },
    async details(upstream, signal) {
      if (account) await syncDetails({ pool, upstream, account, signal });
    },
    refreshedAt: () => readRefreshedAt(pool, userId),
  };
}
