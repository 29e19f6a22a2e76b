/**
 * Reads the details that lists leave out, record by record: for clients that ask before a run comes to them, and for runs, which read
 * all, those of templates first. Any number of readers may read the same details at once.
 */

import type { GraphQLError } from 'graphql';
import pMap from 'p-map';
import type pg from 'pg';
import type { Logger } from 'pino';
import type { Viewer } from '../../../auth/viewer.ts';
import { inTransaction, type Transaction } from '../../../database/transaction.ts';
import { clientError } from '../../../errors.ts';
import type { Budget } from '../client/budget.ts';
import { type Upstream, UpstreamBusy, UpstreamError } from '../client/upstream.ts';
import { noteMissingSessions } from './accountFreshness.ts';
import { kinds } from './kinds.ts';
import { concurrency, endsRun, fetchRecord } from './list.ts';
import { noteDenied, readHeld, readPending } from './pending.ts';
import type { Kind, MirrorRecord, Row } from './rows.ts';
import type { Run } from './run.ts';
import { writeRecords } from './writer.ts';

/** As `fetchRecord` does. An error ends the other requests as well, by the signal. @param held the record as it is here. */
type Fetch = (id: number, signal: AbortSignal, held: Row | undefined) => ReturnType<typeof fetchRecord>;

/**
 * Fetches details. Writes those that are then still pending and unchanged in the list. The others stay as they are: another reader
 * has written them, or the record has changed and is pending again.
 * @returns how many were written, the ids that the upstream does not have, and the reasons for unusable records by id.
 * @throws {UpstreamError} if the upstream cannot be used. The details that were read before the error are written.
 */
async function readDetails(
  pool: pg.Pool,
  accountId: number,
  kind: Kind,
  ids: readonly number[],
  fetch: Fetch,
) {
  const transaction: Transaction = (write) => inTransaction(pool, write);
  const asked = await readHeld(pool, kind, accountId, ids);
  const records: MirrorRecord[] = [];
  const missing: number[] = [];
  const unusable = new Map<number, string>();
  const end = new AbortController();
  const read = async (id: number) => {
    if (end.signal.aborted) return;
    try {
      const found = await fetch(id, end.signal, asked.get(id));
      if (found === undefined) missing.push(id);
      else if (typeof found === 'string') unusable.set(id, found);
      else records.push(found);
    } catch (error) {
      // Only the first error counts.
      end.abort(error);
    }
  };
  await pMap(
    ids.filter((id) => asked.get(id)?.detailsPending),
    read,
    { concurrency },
  );
  // Also after an error, so that nothing has to be fetched twice.
  const onRejected = ({ row }: MirrorRecord, reason: string) => unusable.set(row.id, reason);
  const written = await writeRecords(transaction, { kind, records, accountId, asked, onRejected });
  end.signal.throwIfAborted();
  return { written, missing, unusable };
}

/** The models whose details may be missing. */
export type DetailedModel = 'DttSession' | 'DttTemplate';

/**
 * Fetches pending details of records that the viewer may see, and stores them.
 * @throws SERVICE_UNAVAILABLE, with `retryAfter`, if not all of them can be fetched now.
 */
export type FetchDetails = (viewer: Viewer, model: DetailedModel, ids: readonly number[]) => Promise<void>;

/**
 * Creates the error for details that are missing, and cannot be fetched right now.
 * @param count the number of records without details.
 * @param retryAfter in seconds: when the details may be here.
 */
export function detailsNotHere(count: number, retryAfter = 30): GraphQLError {
  const seconds = Math.max(1, Math.ceil(retryAfter));
  const records = count === 1 ? '1 record' : `${count} records`;
  return clientError(
    'SERVICE_UNAVAILABLE',
    `The details of ${records} are not here yet; try again in ${seconds} s`,
    { retryAfter: seconds },
  );
}

export interface DetailsOnDemandOptions {
  readonly pool: pg.Pool;
  readonly logger: Logger;
  /** A viewer's account; undefined if it is not mirrored. Its upstream is undefined if no token can be used there. */
  accountOf(viewer: Viewer): Promise<{ upstream: Upstream | undefined; budget: Budget } | undefined>;
}

/**
 * Fetches details that a client wants before a run has read them, as far as the budget of the account allows. A client that asks
 * again gets the others.
 */
export function createDetailsOnDemand(options: DetailsOnDemandOptions): FetchDetails {
  const { pool, logger, accountOf } = options;
  /** The records that are being fetched, so that no two requests fetch the same one. */
  const underWay = new Map<string, ReturnType<typeof fetchRecord>>();
  function fetchOnce(upstream: Upstream, kind: Kind, accountId: number, id: number, held: Row | undefined) {
    // Two accounts that see the same template send different tokens. A record that has changed here since a request needs another one.
    const key = `${accountId} ${kind.table} ${id} ${held?.listedDigest}`;
    const fetching =
      underWay.get(key) ?? fetchRecord(upstream, kind, id, accountId).finally(() => underWay.delete(key));
    underWay.set(key, fetching);
    return fetching;
  }
  return async (viewer, model, ids) => {
    const found = await accountOf(viewer);
    if (!found?.upstream) throw detailsNotHere(ids.length);
    const { upstream, budget } = found;
    const affordable = ids.slice(0, budget.available());
    const left = ids.length - affordable.length;
    const kind = model === 'DttTemplate' ? kinds.dttTemplates : kinds.dttSessions;
    try {
      await readDetails(pool, viewer.id, kind, affordable, (id, _, held) =>
        fetchOnce(upstream, kind, viewer.id, id, held),
      );
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error;
      logger.warn(error.failure, 'details not fetched');
      throw detailsNotHere(ids.length, error instanceof UpstreamBusy ? error.retryAfter : undefined);
    }
    if (left > 0) throw detailsNotHere(left, budget.delayFor(left) / 1_000);
  };
}

/** How many records are written at once. Every write makes the gateway run the account's subscriptions again. */
const batchSize = 12;

/** How many records in a row may fail before the upstream counts as away. */
const maxFailures = 3;

/** Details that could not be read are not requested again for this many milliseconds. */
const failureLasts = 60 * 60_000;

/** The last time that the details of a record could not be read, by kind and id. */
export type FailedDetails = Map<string, number>;

/**
 * Fetches all details that are pending, and counts them. A record that cannot be read by its id, or that the upstream does not have by
 * its id, keeps the values of the list.
 * @param failed of earlier runs of this process. With it, details are given up only if the upstream does not have them an hour later
 * either: a short fault must not make them null.
 * @throws {UpstreamError} if the upstream cannot be used. The details that were read before the error are written.
 */
export async function pullDetails(run: Run, failed?: FailedDetails): Promise<void> {
  for (const kind of [kinds.dttTemplates, kinds.dttSessions]) await pullDetailsOf(run, kind, failed);
}

async function pullDetailsOf(run: Run, kind: Kind, failed: FailedDetails | undefined): Promise<void> {
  const { pool, account, upstream, signal, report } = run;
  const name = `details of ${kind.name}`;
  const counts = report.countsOf(name);
  const keyOf = (id: number) => `${kind.table} ${id}`;
  const noteFailed = (id: number) => failed?.set(keyOf(id), performance.now());
  const lastFailed = (id: number) => failed?.get(keyOf(id)) ?? Number.NEGATIVE_INFINITY;
  const pending = await readPending(pool, kind, account.id);
  const due = pending.filter((id) => performance.now() - lastFailed(id) >= failureLasts);
  let failures = 0;
  /** Tolerates a few failures in a row; after more, the upstream counts as away. */
  const fetch: Fetch = async (id, end) => {
    try {
      const found = await fetchRecord(upstream, kind, id, account.id, AbortSignal.any([signal, end]));
      failures = 0;
      if (typeof found === 'object') counts.fetched++;
      return found;
    } catch (error) {
      if (endsRun(error) || end.aborted) throw error;
      // Even if this ends the run: otherwise the next run would end at the same records.
      noteFailed(id);
      if (++failures > maxFailures) throw error;
      return 'it is not available';
    }
  };
  for (let start = 0; start < due.length; start += batchSize) {
    signal.throwIfAborted();
    const batch = due.slice(start, start + batchSize);
    const { written, missing, unusable } = await readDetails(pool, account.id, kind, batch, fetch);
    counts.written += written;
    for (const [id, why] of unusable) report.skip(name, `${kind.list}/${id}`, why);
    const denied = missing.filter((id) => !failed || failed.has(keyOf(id)));
    for (const id of [...missing, ...unusable.keys()]) noteFailed(id);
    if (missing.length > 0) await noteMissing(run, kind, denied);
    counts.skipped += missing.length;
  }
  const still = new Set(failed?.size ? (await readPending(pool, kind, account.id)).map(keyOf) : []);
  for (const key of failed?.keys() ?? [])
    if (key.startsWith(kind.table) && !still.has(key)) failed?.delete(key);
}

/** Notes that records are missing. @param denied those whose details are given up. */
async function noteMissing(
  { account, transaction, confirm, report }: Run,
  kind: Kind,
  denied: readonly number[],
): Promise<void> {
  await confirm();
  await transaction((client) => noteDenied(client, kind, denied, account.id));
  // They may be gone from the list as well, so the next run reads the whole list.
  if (kind.table === 'DttSession') await noteMissingSessions(transaction, account.id);
  for (const id of denied)
    report.notes.push(
      `${kind.list}/${id}: the list has it, and by its id it is not there; kept as the list has it.`,
    );
}
