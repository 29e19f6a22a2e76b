/**
 * One run, which updates the mirror of an account: it identifies the account, reads its lists, and then the details that lists leave
 * out. It may be cut off anywhere: what was read is stored, and the next run continues. Also the runs of a gateway, and their log lines.
 */

import type pg from 'pg';
import type { Logger } from 'pino';
import type { Upstream } from '../client/upstream.ts';
import { type Account, readAccount } from './account.ts';
import { storeRead } from './accountFreshness.ts';
import { type FailedDetails, pullDetails } from './details.ts';
import { kinds } from './kinds.ts';
import { addAccount } from './mirror.ts';
import { pullLists, pullTemplates } from './pull.ts';
import {
  anotherAccount,
  createRun,
  createRunReport,
  type RunOptions,
  type RunReport,
  whileLeased,
} from './run.ts';

export interface SyncOptions extends RunOptions {
  /** The account that the token has to belong to, if that is known. */
  readonly userId?: number;
  /** Whether to read only the list of templates. */
  readonly onlyTemplates?: boolean;
  /** Whether to leave the details to another run. */
  readonly listsOnly?: boolean;
}

export interface SyncReport extends Pick<RunReport, 'countsByKind' | 'notes'> {
  readonly account: Account;
  /** When all lists were last read, as in `StoredFreshness`. */
  readonly refreshedAt: number | undefined;
  readonly requests: number;
}

export const countChanges = ({ countsByKind }: Pick<SyncReport, 'countsByKind'>): number =>
  [...countsByKind.values()].reduce((sum, { written, gone }) => sum + written + gone, 0);

/**
 * Updates the mirror to what the upstream has. Returns undefined while another run is under way.
 * @throws {UpstreamError} when the upstream cannot be used, {SetupError} when the database cannot.
 */
export async function sync(options: SyncOptions): Promise<SyncReport | undefined> {
  const { pool, upstream, userId, onlyTemplates = false, mark } = options;
  const before = upstream.requestCount();
  const began = performance.now();
  const account = await readAccount(upstream, options.signal);
  if (userId !== undefined && account.id !== userId) throw anotherAccount();
  await addAccount(pool, upstream.base, account);
  const run = createRun(options, account);
  let refreshedAt: number | undefined;
  const isRead = await whileLeased(pool, account.id, async (transaction) => {
    const leased = { ...run, transaction };
    if (onlyTemplates) await pullTemplates(leased);
    const hasAllSessions = !onlyTemplates && (await pullLists(leased));
    const readAt = onlyTemplates ? undefined : began;
    refreshedAt = await storeRead(transaction, account.id, { began: readAt, mark, hasAllSessions });
  });
  if (!isRead) return undefined;
  if (!options.listsOnly) await pullDetails(run);
  const { countsByKind, notes } = run.report;
  return { account, refreshedAt, requests: upstream.requestCount() - before, countsByKind, notes };
}

/** Reads the pending details of an account whose lists are here. */
export async function syncDetails(
  options: RunOptions & { readonly account: Account; readonly failed?: FailedDetails },
): Promise<RunReport> {
  const run = createRun(options, options.account);
  await pullDetails(run, options.failed);
  return run.report;
}

const sumOf = (counts: ReadonlyMap<string, number>) =>
  [...counts.values()].reduce((sum, count) => sum + count, 0);

export type AccountRuns = ReturnType<typeof createRuns>;

/** The runs of an account. One run through its lists at a time, in all processes over the database. */
export function createRuns(pool: pg.Pool, userId: number, logger: Logger) {
  let isInStep = false;
  /** The account as the last run has read it. */
  let account: Account | undefined;
  /** Of the last run through the lists, or the current one. */
  let report = createRunReport();
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
      what: Pick<SyncOptions, 'onlyTemplates' | 'mark'>,
    ): Promise<number | undefined> {
      report = createRunReport();
      const done = await sync({ pool, upstream, userId, signal, report, listsOnly: true, ...what });
      if (!done) return undefined;
      account = done.account;
      // Its notes have ids and values, so they are not logged. `dovetail sync` prints them.
      const { requests, countsByKind, refreshedAt } = done;
      for (const [kind, counts] of countsByKind) {
        // A run reads only the newest sessions: those that an earlier run left out are still left out.
        const before = kind === kinds.dttSessions.name ? skippedOfLists.get(kind) : undefined;
        skippedOfLists.set(kind, Math.max(counts.skipped, before ?? 0));
      }
      if (!isInStep) logger.info('mirror in step');
      isInStep = true;
      const changes = countChanges(done);
      if (changes > 0) logger.info({ changes, requests }, 'mirror refreshed');
      return refreshedAt;
    },
    /** Reads pending details until there are none, or the signal is aborted. */
    async details(upstream: Upstream, signal: AbortSignal): Promise<void> {
      if (!account) return;
      await syncDetails({ pool, upstream, account, signal, failed });
      skippedDetails = failed.size;
    },
    progress: () => report.fetched(),
    /** How many records of the upstream are left out: they could not be read, or belong to another account. */
    skipped: () => sumOf(skippedOfLists) + skippedDetails,
  };
}
