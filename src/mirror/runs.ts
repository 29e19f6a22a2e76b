/** The runs that keep an account in step, and what the log says of them. */

import { LRUCache } from 'lru-cache';
import type pg from 'pg';
import type { Logger } from 'pino';
import { atMost } from '../http/lruLimit.ts';
import type { Account, IdentifyAccount } from './account.ts';
import { kindsOf } from './kinds/kinds.ts';
import type { AccountRuns } from './mirroredAccount.ts';
import type { Kind } from './records.ts';
import { describeChanges } from './report.ts';
import { sync, syncDetails } from './sync.ts';

export interface RunsOptions {
  readonly pool: pg.Pool;
  readonly userId: number;
  readonly logger: Logger;
  /** What to do once the account is in step, for whoever reads the log. */
  readonly next: string | undefined;
  readonly learn: IdentifyAccount;
}

const sessions = kindsOf(0).dttSessions.name;

/** How long, in milliseconds, details that could not be read are not asked for again. */
const unreadableLasts = 60 * 60_000;

export function createRuns({ pool, userId, logger, next, learn }: RunsOptions): AccountRuns {
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
        learn,
        signal,
        listener,
        listsOnly: true,
        ...(parts && { parts }),
      });
      if (!report) return undefined;
      account = report.account;
      // What they say has ids and values in it: `dovetail sync` prints them.
      const { requests, notes, countsByKind } = report;
      leftOut.ofLists([...countsByKind].map(([kind, { skipped }]) => [kind, skipped]));
      if (notes.length > 0) logger.debug({ notes: notes.length }, 'mirror differs');
      if (!isInStep) logger.info({ ...(next !== undefined && { next }) }, 'mirror in step');
      isInStep = true;
      const changes = describeChanges(report);
      if (changes !== undefined) logger.info({ changes, requests }, 'mirror refreshed');
      return {
        began: report.began.getTime(),
        hasChanges: changes !== undefined,
        isPart: parts !== undefined,
      };
    },
    async details(upstream, signal) {
      if (!account) return;
      if (Date.now() - unreadableSince > unreadableLasts) {
        unreadable = new Map();
        unreadableSince = Date.now();
      }
      await syncDetails({ pool, upstream, account, learn, signal, unreadable, mayDeny });
      leftOut.ofDetails([...unreadable.values()].reduce((sum, { size }) => sum + size, 0));
    },
    skipped: leftOut.count,
  };
}

/** Gives up a record whose details were denied by two runs, the one long after the other. */
function createDenials() {
  const since = new LRUCache<string, number>(atMost(10_000));
  return ({ table }: Kind, id: number): boolean => {
    const key = `${table} ${id}`;
    const first = since.get(key) ?? Date.now();
    since.set(key, first);
    return Date.now() - first >= unreadableLasts;
  };
}

/** Adds up how many records of each kind were read. */
function createCounter(advanced: (records: number) => void) {
  const fetched = new Map<string, number>();
  return {
    advanced(kind: string, count: number): void {
      fetched.set(kind, count);
      advanced([...fetched.values()].reduce((sum, each) => sum + each, 0));
    },
  };
}

/** How many records are left out, told whenever that changes and not at every run. */
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
      // Of sessions a run reads the newest alone: those that an earlier one left out are so still.
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
