/** The part of a run that reads all pending details of an account, those of templates first. */

import { noteSessions } from './accountRows.ts';
import { type DetailsReader, readDetails } from './details.ts';
import { endsRun, fetchRecord } from './list.ts';
import { noteDenied, readPending } from './pending.ts';
import type { Run } from './pull.ts';
import type { Kind } from './records.ts';
import { addWriteCounts } from './report.ts';

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
  for (const kind of [run.kinds.dttTemplates, run.kinds.dttSessions]) await pullDetailsOf(run, kind, failed);
}

async function pullDetailsOf(run: Run, kind: Kind, failed: FailedDetails | undefined): Promise<void> {
  const { pool, account, transaction, signal, report } = run;
  const name = `details of ${kind.name}`;
  const counts = report.countsOf(name);
  const keyOf = (id: number) => `${kind.table} ${id}`;
  const noteFailed = (id: number) => failed?.set(keyOf(id), performance.now());
  const lastFailed = (id: number) => failed?.get(keyOf(id)) ?? Number.NEGATIVE_INFINITY;
  const pending = await readPending(pool, kind, account.id);
  const due = pending.filter((id) => performance.now() - lastFailed(id) >= failureLasts);
  const noteFetched = () => {
    counts.fetched++;
    run.onProgress?.(name, counts.fetched, due.length);
  };
  const reader = {
    pool,
    accountId: account.id,
    transaction,
    fetch: createFetcher(run, kind, noteFailed, noteFetched),
  };
  for (let start = 0; start < due.length; start += batchSize) {
    signal.throwIfAborted();
    const batch = due.slice(start, start + batchSize);
    const { written, missing, unusable } = await readDetails(reader, kind, batch);
    addWriteCounts(counts, written);
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

/** Makes a function that fetches records. It tolerates a few failures in a row; after more, the upstream counts as away. */
function createFetcher(
  { upstream, signal: end }: Run,
  kind: Kind,
  noteFailed: (id: number) => void,
  noteFetched: () => void,
): DetailsReader['fetch'] {
  let failures = 0;
  return async (id, signal) => {
    try {
      const found = await fetchRecord(upstream, kind, id, AbortSignal.any([end, signal]));
      failures = 0;
      if (typeof found === 'object') noteFetched();
      return found;
    } catch (error) {
      if (endsRun(error) || signal.aborted) throw error;
      // Even if this ends the run: otherwise the next run would end at the same records.
      noteFailed(id);
      if (++failures > maxFailures) throw error;
      return 'it is not available';
    }
  };
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
  if (kind.table === 'DttSession') await noteSessions(transaction, account.id, false);
  for (const id of denied)
    report.notes.push(
      `${kind.list}/${id}: the list has it, and by its id it is not there; kept as the list has it.`,
    );
}
