/**
 * Pulls all records of one kind into the mirror, in two steps that may be far apart: first the list, then the details that the
 * list leaves out, record by record.
 */

import pMap from 'p-map';
import { isForbidden, isNotOffered, type Upstream, type UpstreamRejection } from '../upstream/upstream.ts';
import { concurrency, fetchRecord, firstIssue } from './fetchRecord.ts';
import { type Item, readPages } from './list.ts';
import type { Mirror } from './mirror.ts';
import { pendingRecord, withoutNote } from './pending.ts';
import { addWriteCounts, type RecordCounts } from './recordCounts.ts';
import type { Kind, MirrorRecord } from './records.ts';
import { endsRun, type PulledList, removeGone, removeGoneDownTo } from './removals.ts';
import type { Versions } from './versions.ts';

/** How many records with details are written at once: every write makes the gateway run the account's subscriptions again. */
const batchSize = 12;

/** What the pulls of a run share. */
export interface PullContext {
  readonly upstream: Upstream;
  readonly mirror: Mirror;
  /** Whether to fetch the details of records again that have not changed. */
  readonly full: boolean;
  readonly signal: AbortSignal;
  /** Whether the details of a record that is in the list and missing by its id are given up; they are unless told otherwise. */
  readonly mayDeny?: (kind: Kind, id: number) => boolean;
  /** Called for every record that is skipped. */
  onSkipped(where: string, why: string): void;
  /** Called for every record that is in the list and missing by its id. */
  onDenied(where: string): void;
  /** Called for every value of a record that is another one in the mirror than upstream. */
  onAltered(where: string, what: string): void;
  /** Called for an operation or a record that the upstream does not have. */
  onAbsent(line: string): void;
}

export interface PullOptions {
  readonly counts: RecordCounts;
  /** The ids of records that are new or changed in the list: their details do not count as a further change. */
  readonly fresh: Set<number>;
  /** Told whenever the counts have grown. */
  onAdvanced(): void;
  /** Called for every record of the list that can be read. */
  onListed?(record: MirrorRecord): void;
  /** Called with the number of records of a page that are new or changed, before they are written. Returns whether to stop there. */
  onPage?(changed: number): Promise<boolean>;
  /** Called when more records may be gone upstream than one run asks for. */
  onMoreGone?(): void;
  /** Further ids to ask for, beside those in the mirror, if the upstream does not have the list. */
  idsWithoutList?(): Promise<readonly number[]>;
}

/** The pull of one kind, with its state. */
interface Pull extends PullContext, PullOptions {
  readonly kind: Kind;
  /** The ids that were seen in the list. */
  readonly listed: Set<number>;
  /** The ids of records whose details were pending before. */
  readonly pending: ReadonlySet<number>;
  /** As in `Mirror.write`, of what is being asked for. */
  readonly asked?: Versions;
  /** Whether the list has an item that cannot be identified. Then no record is known to be missing from the list. */
  unreadable: boolean;
}

/**
 * Pulls the list of a kind, and removes what the whole of it no longer has. Details are left to `pullPending`.
 * @returns whether nothing had to be skipped.
 * @throws {UpstreamError} when the list cannot be read. The pages before are in the mirror then.
 */
export async function pull(context: PullContext, kind: Kind, options: PullOptions): Promise<boolean> {
  const { mirror } = context;
  const pending = new Set(kind.summary ? await mirror.pending(kind) : []);
  // Only templates are shared with other accounts, whose runs may write them meanwhile.
  const asked =
    kind.table === 'DttTemplate' ? await mirror.versions(kind, await mirror.ids(kind)) : undefined;
  const current: Pull = {
    ...context,
    ...options,
    kind,
    listed: new Set(),
    pending,
    unreadable: false,
    ...(asked && { asked }),
  };
  const rejection = await pullList(current);
  // Where the list is forbidden, so are its records.
  if (rejection) await pullByIds(current, isForbidden(rejection) ? [] : await mirror.ids(kind));
  return options.counts.skipped === 0;
}

/** Pulls the list. Returns the rejection if the upstream says that it does not offer the list. */
async function pullList(current: Pull): Promise<UpstreamRejection | undefined> {
  const { kind, upstream, signal, listed } = current;
  try {
    for await (const { items, isLast } of readPages(upstream, kind.list, signal, kind.documented)) {
      const readable = await sortPage(current, items);
      if (await current.onPage?.(readable.changed.length + readable.unclear.length)) {
        if (!current.unreadable) await removeGoneDownTo(lackingOf(current), isLast ? undefined : items);
        return undefined;
      }
      if (kind.summary) await writeSummaries(current, readable.changed);
      else await fetchAndWrite(current, readable.changed, readable.unclear);
    }
  } catch (error) {
    if (kind.documented || listed.size > 0 || !isNotOffered(error)) throw error;
    current.onAbsent(`GET ${kind.list} is not offered: it responded with ${error.status}.`);
    return error;
  }
  if (!current.unreadable && !(await removeGone(lackingOf(current)))) current.onMoreGone?.();
  return undefined;
}

/** Pulls records by their ids, where the upstream has no list. */
async function pullByIds(current: Pull, known: readonly number[]): Promise<void> {
  const { kind, idsWithoutList, onAbsent } = current;
  const ids = new Set([...((await idsWithoutList?.()) ?? []), ...known]);
  const missing = await fetchAndWrite(current, [], [...ids]);
  for (const id of missing) onAbsent(`GET ${kind.item}${id}: the upstream has no such record.`);
}

/** Compares a page with the mirror. Returns the records that are new or changed, and the ids of those that have to be fetched. */
async function sortPage(
  current: Pull,
  page: readonly Item[],
): Promise<{ changed: MirrorRecord[]; unclear: number[] }> {
  const { kind, mirror, full, counts, pending } = current;
  const { readable, incomplete } = readPage(current, page);
  const unclear = await findUnclear(current, incomplete);
  for (const record of readable) current.onListed?.(record);
  const isNew = await mirror.newInList(kind, readable);
  const changed = readable.filter(({ row }) => isNew.has(row.id));
  const same = readable.filter(({ row }) => !isNew.has(row.id));
  if (kind.summary) await mirror.rememberListed(kind, same);
  const stale = full && kind.summary ? same : [];
  if (stale.length > 0)
    await mirror.notePending(
      kind,
      stale.map(({ row }) => row.id),
    );
  // Records whose details are to be fetched are counted once the details are here.
  const awaited = new Set([...pending, ...stale.map(({ row }) => row.id), ...isNew]);
  const settled = readable.filter(({ row }) => !awaited.has(row.id)).length;
  counts.fetched += settled;
  counts.unchanged += settled;
  current.onAdvanced();
  return { changed, unclear };
}

/** Writes records as the list has them, and marks their details as pending. */
async function writeSummaries(current: Pull, records: readonly MirrorRecord[]): Promise<void> {
  const { kind, mirror, counts, fresh, asked } = current;
  const rejected = new Set<number>();
  const onRejected = ({ row }: MirrorRecord, why: string) => {
    rejected.add(row.id);
    skip(current, `${kind.list}, record ${row.id}`, why);
  };
  const written = await mirror.write(kind, records.map(pendingRecord), onRejected, asked);
  addWriteCounts(counts, written);
  for (const { row } of records) if (!rejected.has(row.id)) fresh.add(row.id);
  current.onAdvanced();
}

/**
 * Fetches the details that are pending, newest first. A record that cannot be read by its id, or that the upstream does not
 * have by its id and that `mayDeny` does not give up, stays as the list has it.
 * @param failed the ids of those that are not asked for again; those that this run could not read are added.
 * @throws {UpstreamError} when the upstream cannot be used; what was read until then is in the mirror.
 */
export async function pullPending(
  context: PullContext,
  kind: Kind,
  options: PullOptions,
  failed = new Set<number>(),
): Promise<void> {
  const { mirror, signal } = context;
  // Records whose rows were written meanwhile. The next run fetches them again.
  const outdated = new Set<number>();
  for (;;) {
    signal.throwIfAborted();
    const ids = await mirror.pending(kind, { limit: batchSize, without: [...failed, ...outdated] });
    if (ids.length === 0) return;
    const asked = await mirror.versions(kind, ids);
    const current: Pull = {
      ...context,
      ...options,
      kind,
      listed: new Set(),
      pending: new Set(),
      asked,
      unreadable: false,
    };
    await fetchDetails(current, ids, failed);
    for (const id of await mirror.stillPending(kind, ids)) outdated.add(id);
  }
}

/** How many records in a row may fail before the upstream counts as away. */
const maxFailures = 3;

/** Fetches and writes details. @param failed takes the ids of records that cannot be read. */
async function fetchDetails(current: Pull, ids: readonly number[], failed: Set<number>): Promise<void> {
  const { counts, signal, onAdvanced } = current;
  const found: MirrorRecord[] = [];
  const denied: number[] = [];
  let inRow: number[] = [];
  let isHad = false;
  const fetch = async (id: number) => {
    const record = await fetchOne(current, id).catch((error: unknown) => {
      // A single record that the upstream fails to give does not keep out the others.
      if (endsRun(error) || inRow.length === maxFailures) throw error;
      inRow.push(id);
      skip(current, `${current.kind.item}${id}`, 'it cannot be had');
    });
    if (record !== undefined) {
      inRow = [];
      isHad = true;
    }
    if (record === 'missing') denied.push(id);
    else if (record === undefined) failed.add(id);
    else {
      found.push(record);
      counts.fetched++;
    }
    onAdvanced();
  };
  try {
    await pMap(ids, fetch, { concurrency, signal });
  } catch (error) {
    // If other records were read before, the upstream is down, and the last failures were not those records' fault. Otherwise they may
    // be to blame: they stay among the failed ones, so that the next run gets past them.
    if (isHad) for (const id of inRow) failed.delete(id);
    // The records that were read are written, so that they need not be fetched again.
    await writeDetails(current, found, denied, failed).catch(() => {});
    throw error;
  }
  await writeDetails(current, found, denied, failed);
}

async function writeDetails(
  current: Pull,
  fetched: readonly MirrorRecord[],
  absent: readonly number[],
  failed: Set<number>,
): Promise<void> {
  // A fault that lasts a moment must not make details null: the details stay pending until `mayDeny` gives them up.
  const denied = absent.filter((id) => current.mayDeny?.(current.kind, id) ?? true);
  const { kind, mirror, counts, fresh, asked } = current;
  // A client's request may have fetched them since.
  const pending = await mirror.stillPending(
    kind,
    fetched.map(({ row }) => row.id),
  );
  const found = fetched.filter(({ row }) => pending.has(row.id));
  const known = found.filter(({ row }) => !fresh.has(row.id));
  const differing = await mirror.differing(kind, known.map(withoutNote));
  const onRejected = ({ row }: MirrorRecord, why: string) => {
    failed.add(row.id);
    skip(current, `${kind.item}${row.id}`, why);
  };
  await mirror.write(kind, found, onRejected, asked);
  // The other records were counted with the list.
  for (const { row } of known)
    if (!failed.has(row.id)) counts[differing.has(row.id) ? 'updated' : 'unchanged']++;
  if (denied.length > 0) await mirror.noteDenied(kind, denied);
  // They may be gone from the list as well, so the next run reads the whole list.
  if (absent.length > 0 && kind.table === 'DttSession') await mirror.setSessionsComplete(false);
  for (const id of absent) failed.add(id);
  counts.skipped += absent.length;
  for (const id of denied) current.onDenied(`${kind.item}${id}`);
}

/** Reads the items of a page: the records that they are, and the ids of those that have to be asked for. */
function readPage(
  current: Pull,
  page: readonly Item[],
): { readable: MirrorRecord[]; incomplete: Identified[] } {
  const { kind, listed } = current;
  const readable: MirrorRecord[] = [];
  const incomplete: Identified[] = [];
  for (const { id, item } of page) {
    if (id !== undefined) listed.add(id);
    const { data: record, error } = (kind.summary ?? kind.record).safeParse(item);
    if (record) {
      readable.push(record);
      // What makes no sense in a summary is told with the details.
      if (!kind.summary) tellOf(current, record);
    }
    // A list that leaves out fields is no fault, as long as the record by id has them.
    else if (id !== undefined && !kind.summary) incomplete.push({ id, item });
    else {
      const where = id === undefined ? 'a record' : `record ${id}`;
      // It may be any that the list seems to lack.
      if (id === undefined) current.unreadable = true;
      skip(current, `${kind.list}, ${where}`, firstIssue(error));
    }
  }
  return { readable, incomplete };
}

/** An item that has a valid id, and not all fields of the record. */
type Identified = Item & { readonly id: number };

/** The ids of incomplete items that have to be fetched, since the fields that they have differ from the mirror, or may not tell. */
async function findUnclear(current: Pull, items: readonly Identified[]): Promise<number[]> {
  const { kind, mirror, full, counts } = current;
  const glimpsed = items.flatMap(({ item }) => kind.partialRecord?.safeParse(item).data ?? []);
  // An active lock session may change in fields that the list leaves out.
  const settled = full ? [] : glimpsed.filter(({ row }) => !row.isActive);
  const differing = await mirror.differing(kind, settled);
  const same = new Set(settled.map(({ row }) => row.id).filter((id) => !differing.has(id)));
  counts.fetched += same.size;
  counts.unchanged += same.size;
  return items.map(({ id }) => id).filter((id) => !same.has(id));
}

/** Writes records, and further ones that it fetches by their ids. Returns the ids that the upstream has no record for. */
async function fetchAndWrite(
  current: Pull,
  records: readonly MirrorRecord[],
  ids: readonly number[],
): Promise<number[]> {
  const { kind, mirror, counts, signal, onAdvanced } = current;
  counts.fetched += records.length;
  const fetchAndCount = async (id: number) => {
    const record = await fetchOne(current, id);
    if (typeof record === 'object') counts.fetched++;
    if (record !== 'missing') onAdvanced();
    return record;
  };
  const fetched = await pMap(ids, fetchAndCount, { concurrency, signal });
  const onRejected = ({ row }: MirrorRecord, why: string) => {
    counts.skipped++;
    current.onSkipped(`${kind.item}${row.id}`, why);
  };
  const found = fetched.filter((record) => typeof record === 'object');
  addWriteCounts(counts, await mirror.write(kind, [...records, ...found], onRejected));
  onAdvanced();
  return ids.filter((_id, index) => fetched[index] === 'missing');
}

/** Undefined for a record that has to be skipped. */
async function fetchOne(current: Pull, id: number): Promise<MirrorRecord | 'missing' | undefined> {
  const { kind, upstream, signal } = current;
  const record = await fetchRecord(upstream, kind, id, signal);
  if (record === undefined) return 'missing';
  if (typeof record !== 'string') {
    tellOf(current, record);
    return record;
  }
  skip(current, `${kind.item}${id}`, record);
  return undefined;
}

const lackingOf = (current: Pull): PulledList => ({ ...current, fetch: (id) => fetchOne(current, id) });

function tellOf({ kind, onAltered }: Pull, { row, notes }: MirrorRecord): void {
  for (const note of notes) onAltered(`${kind.item}${row.id}`, note);
}

function skip(current: Pull, where: string, why: string): void {
  current.counts.skipped++;
  current.onSkipped(where, why);
}
