/** Pulls all records of one kind into the mirror: from its list, and by id what the list leaves out. */

import pMap from 'p-map';
import type { z } from 'zod';
import { type Item, readList } from './list.ts';
import type { Mirror } from './mirror.ts';
import type { Kind, MirrorRecord } from './records.ts';
import { add, type Tally } from './tally.ts';
import { isMissing, isNotOffered, type Upstream, UpstreamRejection } from './upstream.ts';

/** How many records are asked for at the same time. */
const concurrency = 4;

/** What the pulls of a run share. */
export interface PullContext {
  readonly upstream: Upstream;
  readonly mirror: Mirror;
  /** Whether to ask by id for what the mirror has already. */
  readonly full: boolean;
  readonly signal: AbortSignal;
  /** Told of every record that is skipped. */
  onSkipped(where: string, why: string): void;
  /** Told of what a record has otherwise in the mirror than upstream. */
  onAltered(where: string, what: string): void;
  /** Told of an operation or a record that the upstream does not have. */
  onAbsent(line: string): void;
}

export interface PullOptions {
  readonly tally: Tally;
  /** Told whenever the tally has grown. */
  onAdvanced(): void;
  /** Told of every record in the list that can be read. */
  onListed?(record: MirrorRecord): void;
  /** Told how many records of a page are new or changed, before they are written. Returns whether to stop there. */
  onPage?(changed: number): Promise<boolean>;
  /** The ids to ask for if the upstream does not have the list, beside those that the mirror has. */
  idsWithoutList?(): Promise<readonly number[]>;
}

/** The pull of a kind that is under way. */
interface Pull extends PullContext, PullOptions {
  readonly kind: Kind;
  /** The ids that were seen in the list. */
  readonly listed: Set<number>;
  /** Whether a record in the list could not be told: then what is missing from the list is not known to be gone. */
  unreadable: boolean;
}

/**
 * Pulls a kind, and removes what its whole list no longer has.
 * @returns whether nothing had to be skipped.
 * @throws {UpstreamError} when the list cannot be read; what was read until then is in the mirror.
 */
export async function pull(context: PullContext, kind: Kind, options: PullOptions): Promise<boolean> {
  const current: Pull = { ...context, ...options, kind, listed: new Set(), unreadable: false };
  const hasList = await pullList(current);
  if (!hasList) await pullByIds(current);
  return options.tally.skipped === 0;
}

/** Returns whether the upstream has the list. */
async function pullList(current: Pull): Promise<boolean> {
  const { kind, upstream, signal, listed } = current;
  try {
    for await (const page of readList(upstream, kind.list, signal)) {
      const { records, ids } = await sortPage(current, page);
      if (await current.onPage?.(records.length + ids.length)) return true;
      await fetchAndWrite(current, records, ids);
    }
  } catch (error) {
    if (kind.documented || listed.size > 0 || !isNotOffered(error)) throw error;
    current.onAbsent(`GET ${kind.list} is not offered: it responded with ${error.status}.`);
    return false;
  }
  if (!current.unreadable) await removeGone(current);
  return true;
}

/** Pulls the records whose ids are known, for want of a list. */
async function pullByIds(current: Pull): Promise<void> {
  const { kind, mirror, idsWithoutList, onAbsent } = current;
  const ids = new Set([...((await idsWithoutList?.()) ?? []), ...(await mirror.ids(kind))]);
  const missing = await fetchAndWrite(current, [], [...ids]);
  for (const id of missing) onAbsent(`GET ${kind.item}${id}: the upstream has no such record.`);
}

/** Sorts a page of the list into the records to write, and the ids of those that have to be asked for one by one. */
async function sortPage(
  current: Pull,
  page: readonly Item[],
): Promise<{ records: MirrorRecord[]; ids: number[] }> {
  const { kind, mirror, full, tally } = current;
  const { readable, unclear } = readPage(current, page);
  for (const record of readable) current.onListed?.(record);
  const differing = await mirror.differing(kind, readable);
  const needed = readable.filter(({ row }) => (full && kind.summary) || differing.has(row.id));
  tally.fetched += readable.length - needed.length;
  tally.unchanged += readable.length - needed.length;
  current.onAdvanced();
  return kind.summary
    ? { records: [], ids: needed.map(({ row }) => row.id) }
    : { records: needed, ids: unclear };
}

/** Reads the items of a page: the records that they are, and the ids of those that have to be asked for. */
function readPage(current: Pull, page: readonly Item[]): { readable: MirrorRecord[]; unclear: number[] } {
  const { kind, listed } = current;
  const readable: MirrorRecord[] = [];
  const unclear: number[] = [];
  for (const { id, item } of page) {
    if (id !== undefined) listed.add(id);
    const { data: record, error } = (kind.summary ?? kind.record).safeParse(item);
    if (record) {
      readable.push(record);
      // What a summary says is said of the record as well.
      if (!kind.summary) tellOf(current, record);
    }
    // A list that leaves out fields is no fault, as long as the record by id has them.
    else if (id !== undefined && !kind.summary) unclear.push(id);
    else {
      const where = id === undefined ? 'a record' : `record ${id}`;
      // It may be any that the list seems to lack.
      if (id === undefined) current.unreadable = true;
      skip(current, `${kind.list}, ${where}`, firstIssue(error));
    }
  }
  return { readable, unclear };
}

/** Writes records, and those that it asks for by id. Returns the ids that the upstream has no record for. */
async function fetchAndWrite(
  current: Pull,
  records: readonly MirrorRecord[],
  ids: readonly number[],
): Promise<number[]> {
  const { kind, mirror, tally, signal, onAdvanced } = current;
  tally.fetched += records.length;
  const fetchAndCount = async (id: number) => {
    const record = await fetchOne(current, id);
    if (typeof record === 'object') tally.fetched++;
    if (record !== 'missing') onAdvanced();
    return record;
  };
  const fetched = await pMap(ids, fetchAndCount, { concurrency, signal });
  const onRejected = ({ row }: MirrorRecord, why: string) => {
    tally.skipped++;
    current.onSkipped(`${kind.item}${row.id}`, why);
  };
  const found = fetched.filter((record) => typeof record === 'object');
  add(tally, await mirror.write(kind, [...records, ...found], onRejected));
  onAdvanced();
  return ids.filter((_id, index) => fetched[index] === 'missing');
}

/** Undefined for a record that has to be skipped. */
async function fetchOne(current: Pull, id: number): Promise<MirrorRecord | 'missing' | undefined> {
  const { kind, upstream, signal } = current;
  const path = `${kind.item}${id}`;
  try {
    const { data: record, error } = kind.record.safeParse(await upstream.get(path, signal));
    if (record?.row.id === id) {
      tellOf(current, record);
      return record;
    }
    skip(current, path, record ? `id: is ${record.row.id}` : firstIssue(error));
  } catch (error) {
    if (isMissing(error)) return 'missing';
    if (!(error instanceof UpstreamRejection)) throw error;
    skip(current, path, `it responded with ${error.status}`);
  }
  return undefined;
}

/** Asks once more for each record that the list lacks, since a list that changes while it is read can hide one. */
async function removeGone(current: Pull): Promise<void> {
  const { kind, mirror, listed, signal, tally } = current;
  const unseen = (await mirror.ids(kind)).filter((id) => !listed.has(id));
  const responses = await pMap(unseen, (id) => fetchOne(current, id), { concurrency, signal });
  const gone = unseen.filter((_id, index) => responses[index] === 'missing');
  if (gone.length > 0) await mirror.remove(kind, gone);
  tally.gone += gone.length;
}

function tellOf({ kind, onAltered }: Pull, { row, notes }: MirrorRecord): void {
  for (const note of notes) onAltered(`${kind.item}${row.id}`, note);
}

function skip(current: Pull, where: string, why: string): void {
  current.tally.skipped++;
  current.onSkipped(where, why);
}

/** The first thing that is wrong, with the field that it is wrong about. */
export function firstIssue(error: z.ZodError | undefined): string {
  const [issue] = error?.issues ?? [];
  if (!issue) return 'is not valid';
  return issue.path.length > 0 ? `${issue.path.join('.')}: ${issue.message}` : issue.message;
}
