/** The accounts of a mirror that this process knows of. Each is refreshed while clients use it. */

import pLimit from 'p-limit';
import type pg from 'pg';
import type { Logger } from 'pino';
import type { ChangeFeed } from '../../../database/feed/changeFeed.ts';
import { createBudget } from '../client/budget.ts';
import { createTurns, mostOnDemand } from '../client/turns.ts';
import { UpstreamError } from '../client/upstream.ts';
import { createFreshnessStore } from './accountFreshness.ts';
import { isMirrored } from './mirror.ts';
import {
  closeAccount,
  createMirroredAccount,
  type MirroredAccount,
  type MirroredAccountOptions,
} from './mirroredAccount.ts';
import { createRuns } from './sync.ts';

export interface AccountsOptions extends MirroredAccountOptions {
  readonly pool: pg.Pool;
  readonly feed: ChangeFeed;
  /** Requests a minute for each account. */
  readonly rate: number;
  readonly logger: Logger;
  /** Called with each user whose rows have changed here, before a response can show it. */
  onChanged(userId: number): void;
}

export type Accounts = ReturnType<typeof createAccounts>;

/** How many background requests, for which no client waits, may be in flight. */
const maxRequests = 32;

/** How many connections the requests about accounts may have open. */
export const maxConnections = maxRequests + mostOnDemand;

/** Notes the results of runs, and logs those that fail. */
function createRunLog(logger: Logger) {
  let lastSuccess: string | undefined;
  let lastError: string | undefined;
  return {
    succeed(): void {
      lastSuccess = new Date().toISOString();
    },
    fail(error: unknown): void {
      const isUpstream = error instanceof UpstreamError;
      const what = isUpstream ? error.failure.failure : 'the mirror could not be written';
      lastError = `${new Date().toISOString()} ${what}`;
      logger.error(isUpstream ? error.failure : { err: error }, 'mirror not refreshed');
    },
    status: () => `last success ${lastSuccess ?? 'never'}, last error ${lastError ?? 'none'}`,
  };
}

export function createAccounts(options: AccountsOptions) {
  const { pool, feed, logger, rate } = options;
  const accounts = new Map<number, MirroredAccount>();
  // Removed accounts, until their runs have ended.
  const leaving = new Set<Promise<void>>();
  const inTurn = pLimit(maxRequests);
  const createOnDemand = createTurns();
  const runLog = createRunLog(logger);
  let requests = 0;
  const countSkipped = () => [...accounts.values()].reduce((sum, account) => sum + account.runs.skipped(), 0);
  const unsubscribe = feed.subscribe((change) => {
    // A changed row of User means that an account has been added, removed or renamed.
    if (change.table !== undefined && change.table !== 'User') return;
    const changed = change.kind === 'user' ? [accounts.get(change.userId)] : accounts.values();
    for (const account of changed) account?.freshness.markStale();
  });

  /** The account of an upstream user. Adds it if this process does not know it. */
  function getOrAdd(id: number): MirroredAccount {
    const known = accounts.get(id);
    if (known) return known;
    const account = createMirroredAccount({
      ...options,
      inTurn,
      onDemand: createOnDemand(),
      budget: createBudget(rate, () => requests++),
      runs: createRuns(pool, id, logger),
      stored: createFreshnessStore(pool, id),
      onChanged: () => options.onChanged(id),
      onSuccess: runLog.succeed,
      onFailure: runLog.fail,
    });
    accounts.set(id, account);
    return account;
  }

  return {
    known: (userId: number) => accounts.get(userId),
    getOrAdd,
    /** Must be called if an account may have changed in the database without an announcement. */
    noteChange: (userId: number) => accounts.get(userId)?.freshness.markStale(),
    noteFailure: runLog.fail,
    /** The account of a user; undefined for one that does not live upstream. */
    async of(userId: number): Promise<MirroredAccount | undefined> {
      if (!accounts.has(userId) && !(await isMirrored(pool, userId))) return undefined;
      const account = getOrAdd(userId);
      // Another process may have noted a write that was not announced here.
      if (!feed.listening) account.freshness.markStale();
      await account.freshness.ensureLoaded();
      return account;
    },
    /** Removes an account that no token here can read upstream any more. */
    removeUnreachable(userId: number): void {
      const account = accounts.get(userId);
      if (!account || account.credentials.size > 0) return;
      accounts.delete(userId);
      const closing = closeAccount(account).finally(() => leaving.delete(closing));
      leaving.add(closing);
    },
    figures: () => ({ accounts: accounts.size, skipped: countSkipped(), requests }),
    /** A line about the state of the mirror, without private data. */
    status: () => `${runLog.status()}${countSkipped() > 0 ? `, ${countSkipped()} records left out` : ''}`,
    async close(): Promise<void> {
      unsubscribe();
      await Promise.all([...[...accounts.values()].map(closeAccount), ...leaving]);
    },
  };
}
