/**
 * Reads the details that lists leave out, record by record: those that a run reads, and those that a client asks for before. Any number
 * of readers may read the same details at once.
 */

import pMap from 'p-map';
import type pg from 'pg';
import { inTransaction } from '../database/transaction.ts';
import type { Upstream } from '../upstream/upstream.ts';
import { concurrency, fetchRecord } from './list.ts';
import { readStillPending } from './pending.ts';
import type { Kind, MirrorRecord } from './records.ts';
import type { WriteCounts } from './report.ts';
import { type Transaction, writeRecords } from './writer.ts';

/** The result of reading details. */
export interface DetailsRead {
  readonly written: WriteCounts;
  /** The ids of the records that the upstream does not have. */
  readonly missing: readonly number[];
  /** By the ids of records that cannot be used: why. */
  readonly unusable: ReadonlyMap<number, string>;
}

export interface DetailsReader {
  readonly pool: pg.Pool;
  readonly accountId: number;
  readonly transaction: Transaction;
  /** As `fetchRecord` does. An error ends the other requests as well, by the signal. */
  fetch(id: number, signal: AbortSignal): ReturnType<typeof fetchRecord>;
}

/**
 * Fetches details, and writes those that are still pending by then, and of which no list has said anything new meanwhile. The others
 * stay as they are: somebody else has read them, or they are pending for something newer.
 * @throws {UpstreamError} when the upstream cannot be used; what was read until then is in the mirror.
 */
export async function readDetails(
  { pool, accountId, transaction, fetch }: DetailsReader,
  kind: Kind,
  ids: readonly number[],
): Promise<DetailsRead> {
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
  // Also after an error: what was read need not be fetched again.
  const onRejected = ({ row }: MirrorRecord, reason: string) => unusable.set(row.id, reason);
  const written = await writeRecords(transaction, { kind, records, accountId, asked, onRejected });
  end.signal.throwIfAborted();
  return { written, missing, unusable };
}

/**
 * Fetches the details of one record, if they are still pending.
 * @param upstream sends the token of the account.
 * @throws {UpstreamError} when the upstream cannot be used.
 */
export async function fetchDetails(
  { pool, upstream, accountId }: Pick<DetailsReader, 'pool' | 'accountId'> & { readonly upstream: Upstream },
  kind: Kind,
  id: number,
): Promise<void> {
  const reader: DetailsReader = {
    pool,
    accountId,
    transaction: (write) => inTransaction(pool, write),
    fetch: (each, signal) => fetchRecord(upstream, kind, each, signal),
  };
  await readDetails(reader, kind, [id]);
}
