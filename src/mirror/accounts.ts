/** The accounts of a mirror that this process knows of. Each is refreshed while clients use it. */

import { LRUCache } from 'lru-cache';
import pLimit from 'p-limit';
import type pg from 'pg';
import type { Logger } from 'pino';
import type { ServerConfig } from '../database/connection/client.ts';
import type { Change, ChangeFeed } from '../database/feed/changeFeed.ts';
import { atMost } from '../http/lruLimit.ts';
import { type Budget, createBudget, longestWait } from '../upstream/budget.ts';
import type { Credential, TokenStatus } from '../upstream/tokens.ts';
import { type Timing, UpstreamError } from '../upstream/upstream.ts';
import type { IdentifyAccount } from './account.ts';
import { createActivationLock } from './activationLock.ts';
import { isMirrored } from './mirror.ts';
import { createMirroredAccount, type MirroredAccount } from './mirroredAccount.ts';
import { createRuns } from './runs.ts';
import { createFreshnessStore } from './storedFreshness.ts';

export interface AccountsOptions {
  readonly pool: pg.Pool;
  /** The connection for sessions of their own; undefined over the embedded engine, which no other process can have open. */
  readonly direct: ServerConfig | undefined;
  readonly feed: ChangeFeed;
  readonly base: string;
  readonly timing: Partial<Timing>;
  /** Requests a minute for each account. */
  readonly rate: number;
  /** From the end of a refresh to the start of the next, in milliseconds. */
  readonly interval: number;
  /** For how long after its last use an account is refreshed, in milliseconds. */
  readonly idle: number;
  readonly logger: Logger;
  /** Finds out whose token it is. */
  readonly identify: IdentifyAccount;
  /** The advice that is logged once an account has been read; undefined for none. */
  readonly next: string | undefined;
  /** Called with each user whose rows have changed here, before a response can show it. */
  onChanged(userId: number): void;
  /** As in `MirroredAccountOptions`. */
  onTokenStatus(credential: Credential, said: TokenStatus, askedAt: number): void;
}

/** Figures for the metrics. */
export interface MirrorFigures {
  /** How many accounts this process refreshes. */
  readonly accounts: number;
  /** How many records of theirs are left out. */
  readonly skipped: number;
  /** How many requests the upstream got. */
  readonly requests: number;
}

export interface Accounts {
  /** The account of a user; undefined for one that does not live upstream. */
  of(userId: number): Promise<MirroredAccount | undefined>;
  /** The account of a user that this process knows of. */
  known(userId: number): MirroredAccount | undefined;
  /** The account of a user upstream, whether it is here already or not. */
  getOrAdd(userId: number): MirroredAccount;
  /** Removes an account that no token here can read upstream any more. */
  removeUnreachable(userId: number): void;
  /** Must be called when the database may say otherwise of an account than was announced. */
  noteChange(userId: number): void;
  /** Must be called with errors outside of the runs. */
  noteFailure(error: unknown): void;
  /** A line about the state of the mirror, without private data. */
  status(): string;
  figures(): MirrorFigures;
  close(): Promise<void>;
}

/** How many budgets of removed accounts are remembered. */
const maxBudgets = 10_000;

/** How many requests that no client waits for may be in flight. */
const maxRequests = 32;

/** A changed row of User means that an account has been added, removed or renamed. */
function markAccountsStale(accounts: ReadonlyMap<number, MirroredAccount>, change: Change): void {
  if (change.table !== undefined && change.table !== 'User') return;
  const changed = change.kind === 'user' ? [accounts.get(change.userId)] : accounts.values();
  for (const account of changed) account?.freshness.markStale();
}

/** The same failure is not logged again for this many milliseconds. */
const logInterval = 1_000;

/** The budgets of removed accounts: the upstream still counts their last requests. */
function createBudgets(rate: number, onSent: () => unknown) {
  const left = new LRUCache<number, Budget>({ ...atMost(maxBudgets), ttl: longestWait });
  return {
    of: (userId: number) => left.get(userId) ?? createBudget(rate, onSent),
    keep: (userId: number, budget: Budget) => void left.set(userId, budget),
  };
}

const figuresOf = (accounts: ReadonlyMap<number, MirroredAccount>, requests: number): MirrorFigures => ({
  accounts: accounts.size,
  skipped: [...accounts.values()].reduce((sum, account) => sum + account.skipped(), 0),
  requests,
});

const leftOut = ({ skipped }: MirrorFigures) => (skipped > 0 ? `, ${skipped} records left out` : '');

/** Notes the results of runs, and logs those that fail. */
function createRunLog(logger: Logger) {
  let lastSuccess: string | undefined;
  let lastError: string | undefined;
  let logged = { what: '', at: Number.NEGATIVE_INFINITY };
  return {
    succeed(): void {
      lastSuccess = new Date().toISOString();
    },
    fail(error: unknown): void {
      const isUpstream = error instanceof UpstreamError;
      const what = isUpstream ? error.failure.failure : 'the mirror could not be written';
      lastError = `${new Date().toISOString()} ${what}`;
      // An upstream that cannot be reached fails for all accounts, and for every new token: one line is enough.
      if (isUpstream && logged.what === what && performance.now() - logged.at < logInterval) return;
      logged = { what, at: performance.now() };
      logger.error(isUpstream ? error.failure : { err: error }, 'mirror not refreshed');
    },
    status: () => `last success ${lastSuccess ?? 'never'}, last error ${lastError ?? 'none'}`,
  };
}

export function createAccounts(options: AccountsOptions): Accounts {
  const { pool, feed, logger } = options;
  const accounts = new Map<number, MirroredAccount>();
  // Removed accounts, until their runs have ended.
  const leaving = new Set<Promise<void>>();
  const inTurn = pLimit(maxRequests);
  const runLog = createRunLog(logger);
  let requests = 0;
  const budgets = createBudgets(options.rate, () => requests++);
  const unsubscribe = feed.subscribe((change) => markAccountsStale(accounts, change));
  function getOrAdd(id: number): MirroredAccount {
    const known = accounts.get(id);
    if (known) return known;
    const account = createMirroredAccount({
      ...options,
      id,
      inTurn,
      budget: budgets.of(id),
      withActivationLock: createActivationLock(options.direct, id),
      runs: createRuns({ ...options, userId: id }),
      freshnessStore: createFreshnessStore(pool, id),
      onChanged: () => options.onChanged(id),
      onSuccess: runLog.succeed,
      onFailure: runLog.fail,
    });
    accounts.set(id, account);
    return account;
  }

  const figures = () => figuresOf(accounts, requests);

  return {
    known: (userId) => accounts.get(userId),
    getOrAdd,
    noteChange: (userId) => accounts.get(userId)?.freshness.markStale(),
    noteFailure: runLog.fail,
    async of(userId) {
      if (!accounts.has(userId) && !(await isMirrored(pool, userId))) return undefined;
      const account = getOrAdd(userId);
      // Another process may have noted a write that was not announced here.
      if (!feed.listening) account.freshness.markStale();
      await account.freshness.ensureLoaded();
      return account;
    },
    removeUnreachable(userId) {
      const account = accounts.get(userId);
      if (!account?.isUnreachable) return;
      accounts.delete(userId);
      budgets.keep(userId, account.budget);
      const closing = account.close().finally(() => leaving.delete(closing));
      leaving.add(closing);
    },
    figures,
    status: () => `${runLog.status()}${leftOut(figures())}`,
    async close() {
      unsubscribe();
      await Promise.all([...[...accounts.values()].map((account) => account.close()), ...leaving]);
    },
  };
}
