/**
 * Reads the details that lists leave out, record by record: for runs, and for clients that ask before the run comes to them. Any number
 * of readers may read the same details at once.
 */

import pMap from 'p-map';
import type pg from 'pg';
import type { Logger } from 'pino';
import type { Viewer } from '../auth/viewer.ts';
import { inTransaction } from '../database/transaction.ts';
import { detailsNotHere } from '../errors.ts';
import type { UpstreamAccount } from '../schema/context.ts';
import type { Budget } from '../upstream/budget.ts';
import { type Upstream, UpstreamBusy, UpstreamError } from '../upstream/upstream.ts';
import { kindsOf } from './kinds.ts';
import { concurrency, fetchRecord } from './list.ts';
import { readStillPending } from './pending.ts';
import type { Kind, MirrorRecord } from './records.ts';
import { type Transaction, writeRecords } from './writer.ts';

export interface DetailsReader {
  readonly pool: pg.Pool;
  readonly accountId: number;
  readonly transaction: Transaction;
  /** As `fetchRecord` does. An error ends the other requests as well, by the signal. */
  fetch(id: number, signal: AbortSignal): ReturnType<typeof fetchRecord>;
}

/**
 * Fetches details. Writes those that are then still pending and unchanged in the list. The others stay as they are: another reader
 * has written them, or the record has changed and is pending again.
 * @returns the counts of written records, the ids that the upstream does not have, and the reasons for unusable records by id.
 * @throws {UpstreamError} if the upstream cannot be used. The details that were read before the error are written.
 */
export async function readDetails(
  { pool, accountId, transaction, fetch }: DetailsReader,
  kind: Kind,
  ids: readonly number[],
) {
  const asked = await readStillPending(pool, kind, ids);
  const records: MirrorRecord[] = [];
  const missing: number[] = [];
  const unusable = new Map<number, string>();
  const end = new AbortController();
  const read = async (id: number) => {
    if (end.signal.aborted) return;
    try {
      const found = await fetch(id, end.signal);
      if (found === undefined) missing.push(id);
      else if (typeof found === 'string') unusable.set(id, found);
      else records.push(found);
    } catch (error) {
      // Only the first error counts.
      end.abort(error);
    }
  };
  await pMap(
    ids.filter((id) => asked.has(id)),
    read,
    { concurrency },
  );
  // Also after an error, so that nothing has to be fetched twice.
  const onRejected = ({ row }: MirrorRecord, reason: string) => unusable.set(row.id, reason);
  const written = await writeRecords(transaction, { kind, records, accountId, asked, onRejected });
  end.signal.throwIfAborted();
  return { written, missing, unusable };
}

export interface DetailsOnDemandOptions {
  readonly pool: pg.Pool;
  readonly logger: Logger;
  /** The upstream client and the budget of a viewer's account; undefined if no token can be used there. */
  accountOf(viewer: Viewer): Promise<{ upstream: Upstream | undefined; budget: Budget } | undefined>;
}

/**
 * Fetches details that a client wants before a run has read them, as far as the budget of the account allows. A client that asks
 * again gets the others.
 */
export function createDetailsOnDemand({
  pool,
  logger,
  accountOf,
}: DetailsOnDemandOptions): UpstreamAccount['fetchDetails'] {
  /** The records that are being fetched, so that no two requests fetch the same one. */
  const underWay = new Map<string, ReturnType<typeof fetchRecord>>();
  function fetchOnce(upstream: Upstream, kind: Kind, accountId: number, id: number) {
    // Two accounts that see the same template send different tokens.
    const key = `${accountId} ${kind.table} ${id}`;
    const fetching = underWay.get(key) ?? fetchRecord(upstream, kind, id).finally(() => underWay.delete(key));
    underWay.set(key, fetching);
    return fetching;
  }
  return async (viewer, model, ids) => {
    const found = await accountOf(viewer);
    if (!found?.upstream) throw detailsNotHere(ids.length);
    const { upstream, budget } = found;
    const affordable = ids.slice(0, budget.available());
    const left = ids.length - affordable.length;
    const { dttTemplates, dttSessions } = kindsOf(viewer.id);
    const kind = model === 'DttTemplate' ? dttTemplates : dttSessions;
    const reader: DetailsReader = {
      pool,
      accountId: viewer.id,
      transaction: (write) => inTransaction(pool, write),
      fetch: (id) => fetchOnce(upstream, kind, viewer.id, id),
    };
    try {
      await readDetails(reader, kind, affordable);
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error;
      logger.warn(error.failure, 'details not fetched');
      throw detailsNotHere(ids.length, error instanceof UpstreamBusy ? error.retryAfter : undefined);
    }
    if (left > 0) throw detailsNotHere(left, budget.delayFor(left) / 1_000);
  };
}
