/** The runs that synchronise an account, and their log lines. */

import { LRUCache } from 'lru-cache';
import type pg from 'pg';
import type { Logger } from 'pino';
import { atMost } from '../http/lruLimit.ts';
import type { Account, IdentifyAccount } from './account.ts';
import { noteChanged, readAgain } from './details.ts';
import { kindsOf } from './kinds/kinds.ts';
import type { AccountRuns } from './mirroredAccount.ts';
import type { Kind } from './records.ts';
import { endsRun } from './removals.ts';
import { describeChanges } from './report.ts';
import { sync, syncDetails } from './sync.ts';

export interface RunsOptions {
  readonly pool: pg.Pool;
  readonly userId: number;
  readonly logger: Logger;
  /** The advice that is logged once the account has been read. */
  readonly next: string | undefined;
  readonly identify: IdentifyAccount;
}

const sessions = kindsOf(0).dttSessions.name;

/** Details that could not be read are not requested again for this many milliseconds. */
const unreadableLasts = 60 * 60_000;

export function createRuns({ pool, userId, logger, next, identify }: RunsOptions): AccountRuns {
  let isInStep = false;
  const leftOut = createLeftOut(logger);
  /** As the last run found it. */
  let account: Account | undefined;
  let unreadable = new Map<string, Set<number>>();
  let unreadableSince = Date.now();
  const mayDeny = createDenials();
  return {
    async lists(upstream, signal, advanced, parts) {
      const listener = createCounter(advanced);
      const report = await sync({
        pool,
        upstream,
        userId,
        identify,
        signal,
        listener,
        listsOnly: true,
        ...(parts && { parts }),
      });
      if (!report) return undefined;
      account = report.account;
      // Not logged here, since they contain ids and values: `dovetail sync` prints them.
      const { requests, notes, countsByKind } = report;
      leftOut.ofLists([...countsByKind].map(([kind, { skipped }]) => [kind, skipped]));
      if (notes.length > 0) logger.debug({ notes: notes.length }, 'mirror differs');
      if (!isInStep) logger.info({ ...(next !== undefined && { next }) }, 'mirror in step');
      isInStep = true;
      const changes = describeChanges(report);
      if (changes !== undefined) logger.info({ changes, requests }, 'mirror refreshed');
      return {
        began: report.began.getTime(),
        isPart: parts !== undefined,
      };
    },
    async details(upstream, signal) {
      if (!account) return;
      if (Date.now() - unreadableSince > unreadableLasts) {
        unreadable = new Map();
        unreadableSince = Date.now();
      }
      await syncDetails({ pool, upstream, account, identify, signal, unreadable, mayDeny });
      leftOut.ofDetails([...unreadable.values()].reduce((sum, { size }) => sum + size, 0));
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

/** Decides when a record is given up whose details the upstream denies: when two runs, an hour apart, were denied them. */
function createDenials() {
  const since = new LRUCache<string, number>(atMost(10_000));
  return ({ table }: Kind, id: number): boolean => {
    const key = `${table} ${id}`;
    const first = since.get(key) ?? Date.now();
    since.set(key, first);
    return Date.now() - first >= unreadableLasts;
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
    ofLists(skipped: readonly (readonly [kind: string, count: number])[]): void {
      // A run reads only the newest sessions: those that an earlier run left out are still left out.
      for (const [kind, now] of skipped)
        lists.set(kind, kind === sessions ? Math.max(now, lists.get(kind) ?? 0) : now);
      tell();
    },
    ofDetails(skipped: number): void {
      details = skipped;
      tell();
    },
  };
}
