/**
 * Reads the list of one kind of records, and writes what is new in it. Details that the list leaves out are pending from then on:
 * details.ts reads them.
 */

import pMap from 'p-map';
import type pg from 'pg';
import { isForbidden, isNotOffered, type Upstream } from '../upstream/upstream.ts';
import type { Account } from './account.ts';
import { readIds, readOver } from './accountRows.ts';
import { concurrency, fetchRecord, firstIssue } from './fetchRecord.ts';
import type { kindsOf } from './kinds/kinds.ts';
import { type Item, readPages } from './list.ts';
import { type HeldRecords, isUnchanged, readHeld } from './listed.ts';
import { notePending } from './pending.ts';
import type { Kind, MirrorRecord, Row } from './records.ts';
import { removeMissing } from './removals.ts';
import { addWriteCounts, type RunReport, type SyncListener } from './report.ts';
import { findDiffering } from './rows.ts';
import { isAboutData, type Transaction, writeRecords } from './writer.ts';

/** One run through an account, which nobody else writes meanwhile. */
export interface Run {
  readonly pool: pg.Pool;
  readonly upstream: Upstream;
  readonly signal: AbortSignal;
  readonly account: Account;
  /** Whether this run has added the account. */
  readonly isNew: boolean;
  readonly kinds: ReturnType<typeof kindsOf>;
  /** Whether to fetch the details of records again that have not changed, and to read all sessions. */
  readonly full: boolean;
  /** Begins a transaction. It fails if another run has taken over. */
  readonly transaction: Transaction;
  /**
   * Asks the upstream again whose the token is, before anything is removed, or written that does not name its owner: a token may
   * come to mean another account during the run. @throws {AnotherAccount} if it does.
   */
  confirm(): Promise<void>;
  readonly report: RunReport;
  readonly listener: SyncListener | undefined;
}

export interface PullOptions {
  /** How many records there may be in the end. */
  readonly expected?: number | undefined;
  /** Called for every record of the list that can be read. */
  onListed?(record: MirrorRecord): void;
  /** Called with the number of new and changed records of a page, before they are written. Returns whether to read no further. */
  onPage?(news: number): Promise<boolean>;
  /** Further ids to ask for, beside those in the mirror, if the upstream does not have the list. */
  idsWithoutList?(): Promise<readonly number[]>;
}

/**
 * Pulls the list of a kind, and removes what it no longer has.
 * @returns false if more records may be gone than were checked.
 * @throws {UpstreamError} when the list cannot be read. The pages before are in the mirror then.
 */
export async function pullKind(run: Run, kind: Kind, options: PullOptions = {}): Promise<boolean> {
  const { pool, account, upstream, signal, report, listener } = run;
  const counts = report.countsOf(kind.name);
  const listed = new Set<number>();
  /** Whether every item has an id. Otherwise no record is known to be missing. */
  let isIdentified = true;
  try {
    // Only templates are shared with other accounts, whose runs may write them from here on.
    const templates = kind.table === 'DttTemplate' ? await readHeld(pool, kind, account.id, []) : undefined;
    for await (const { items, isLast } of readPages(upstream, kind.list, signal, kind.documented)) {
      for (const { id } of items) if (id !== undefined) listed.add(id);
      isIdentified &&= items.every(({ id }) => id !== undefined);
      const records = await readPage(run, kind, items);
      for (const record of records) options.onListed?.(record);
      const held = templates ?? (await readHeld(pool, kind, account.id, idsOf(records)));
      const news = await findNews(run, kind, records, held);
      counts.fetched += records.length;
      counts.unchanged += records.length - news.length;
      listener?.advanced?.(kind.name, counts.fetched, options.expected);
      if (await options.onPage?.(news.length))
        return isIdentified ? removeMissing(run, kind, listed, isLast ? [] : items) : true;
      await write(run, kind, news, held);
    }
  } catch (error) {
    if (kind.documented || listed.size > 0 || !isNotOffered(error)) throw error;
    report.note(`GET ${kind.list} is not offered: it responded with ${error.status}.`);
    // Where the list is forbidden, so are its records.
    const known = isForbidden(error) ? [] : await readIds(pool, kind, account.id);
    await pullByIds(run, kind, [...((await options.idsWithoutList?.()) ?? []), ...known]);
    return true;
  }
  return isIdentified ? removeMissing(run, kind, listed) : true;
}

/** Reads the items of a page. Those that lack fields are fetched by their ids, if the list has all fields of other records. */
async function readPage(run: Run, kind: Kind, items: readonly Item[]): Promise<MirrorRecord[]> {
  const { pool, account, full, report } = run;
  const records: MirrorRecord[] = [];
  const incomplete = new Map<number, unknown>();
  for (const { id, item } of items) {
    const { data: record, error } = (kind.summary ?? kind.record).safeParse(item);
    if (record) records.push(record);
    else if (id !== undefined && !kind.summary) incomplete.set(id, item);
    else
      report.skip(
        kind.name,
        `${kind.list}, ${id === undefined ? 'a record' : `record ${id}`}`,
        firstIssue(error),
      );
  }
  // A lock session that is over does not change any more.
  const over = full || incomplete.size === 0 ? [] : await readOver(pool, kind, account.id);
  for (const id of over) incomplete.delete(id);
  const { found } = await fetchAll(run, kind, [...incomplete.keys()], incomplete);
  return [...records, ...found];
}

/** Returns the records that are new or changed, or not to be trusted in a full run. */
async function findNews(
  { pool, account, full, transaction }: Run,
  kind: Kind,
  records: readonly MirrorRecord[],
  held: ReadonlyMap<number, Row>,
): Promise<readonly MirrorRecord[]> {
  if (kind.summary) {
    const isSame = (record: MirrorRecord) => isUnchanged(held.get(record.row.id), record, account.id);
    if (full) await transaction((client) => notePending(client, kind, idsOf(records.filter(isSame))));
    return records.filter((record) => !isSame(record));
  }
  try {
    const differing = await findDiffering(pool, kind, records);
    return records.filter(({ row }) => differing.has(row.id));
  } catch (error) {
    // Writing them one by one finds out which value the database does not take.
    if (isAboutData(error)) return records;
    throw error;
  }
}

async function write(
  { account, transaction, confirm, report }: Run,
  kind: Kind,
  records: readonly MirrorRecord[],
  asked?: HeldRecords,
): Promise<void> {
  if (records.length === 0) return;
  if (kind.summary) await confirm();
  const written = await writeRecords(transaction, {
    kind,
    records,
    accountId: account.id,
    onRejected: ({ row }, why) =>
      report.skip(kind.name, `${kind.list}${kind.summary ? ', record ' : '/'}${row.id}`, why),
    asked,
  });
  addWriteCounts(report.countsOf(kind.name), written);
}

/** Pulls records by their ids, where the upstream has no list. */
async function pullByIds(run: Run, kind: Kind, ids: readonly number[]): Promise<void> {
  const { found, missing } = await fetchAll(run, kind, [...new Set(ids)]);
  run.report.countsOf(kind.name).fetched += found.length;
  await write(run, kind, found);
  for (const id of missing) run.report.note(`GET ${kind.list}/${id}: the upstream has no such record.`);
}

/** @param listed what the list says of the records. */
async function fetchAll(
  run: Run,
  kind: Kind,
  ids: readonly number[],
  listed: ReadonlyMap<number, unknown> = new Map(),
) {
  const { signal } = run;
  const fetched = await pMap(ids, (id) => fetchNoted(run, kind, id, listed.get(id)), { concurrency, signal });
  return {
    found: fetched.filter((record) => typeof record === 'object'),
    missing: ids.filter((_id, index) => fetched[index] === 'missing'),
  };
}

/** Fetches a record by its id. Undefined for one that is skipped, which is noted. */
export async function fetchNoted(
  run: Run,
  kind: Kind,
  id: number,
  listed?: unknown,
): Promise<MirrorRecord | 'missing' | undefined> {
  const record = await fetchRecord(run.upstream, kind, id, run.signal, listed);
  if (record === undefined) return 'missing';
  if (typeof record === 'object') return record;
  run.report.skip(kind.name, `${kind.list}/${id}`, record);
  return undefined;
}

const idsOf = (records: readonly MirrorRecord[]) => records.map(({ row }) => row.id);
