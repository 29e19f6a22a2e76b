/** Pulls all records of one kind into the mirror: from its list, and by id what the list leaves out. */

import pMap from 'p-map';
import type { z } from 'zod';
import { add, type Counts, type Mirror } from './mirror.ts';
import { type Item, readPages } from './pages.ts';
import type { Kind, MirrorRecord } from './records.ts';
import { HttpError, isMissing, isNotOffered, type Upstream } from './upstream.ts';

/** How many records are asked for at the same time. */
const concurrency = 4;

export interface Tally extends Counts {
  fetched: number;
  gone: number;
  skipped: number;
}

export const emptyTally = (): Tally => ({
  fetched: 0,
  created: 0,
  updated: 0,
  unchanged: 0,
  gone: 0,
  skipped: 0,
});

/** What the pulls of a run share. */
export interface PullContext {
  readonly upstream: Upstream;
  readonly mirror: Mirror;
  /** Whether to ask by id for what the mirror has already. */
  readonly full: boolean;
  readonly signal: AbortSignal;
  /** Told of every record that is skipped. */
  onSkipped(where: string, why: string): void;
  /** Told of an operation or a record that the upstream does not have. */
  onAbsent(line: string): void;
}

export interface PullOptions {
  readonly tally: Tally;
  /** Told whenever the tally has grown. */
  onAdvanced(): void;
  /** Told of every record in the list. */
  onListed?(record: MirrorRecord): void;
  /** Told how many records of a page are new or changed, before they are written. Returns whether to stop there. */
  onPage?(changed: number): Promise<boolean>;
  /** The ids to ask for if the upstream does not have the list, beside those that the mirror has. */
  idsWithoutList?(): Promise<readonly number[]>;
}

/**
 * Pulls a kind, and removes what its whole list no longer has.
 * @returns whether nothing had to be skipped.
 * @throws {UpstreamError} when the list cannot be read; what was read until then is in the mirror.
 */
export async function pull(context: PullContext, kind: Kind, options: PullOptions): Promise<boolean> {
  const { upstream, mirror, signal, full, onAbsent } = context;
  const { tally, onAdvanced, onListed, onPage, idsWithoutList } = options;
  const seen = new Set<number>();
  /** Whether a response could not be read: then what is missing from the list is not known to be gone. */
  let unreadable = false;

  if (!(await pullList())) await pullByIds();
  return tally.skipped === 0;

  /** Returns whether the upstream has the list. */
  async function pullList(): Promise<boolean> {
    try {
      for await (const page of readPages(upstream, kind.list, signal)) {
        const { records, ids } = await readPage(page);
        if (await onPage?.(records.length + ids.length)) return true;
        await fetchAndWrite(records, ids);
      }
    } catch (error) {
      if (kind.documented || seen.size > 0 || !isNotOffered(error)) throw error;
      onAbsent(`GET ${kind.list} is not offered: it answered ${error.status}.`);
      return false;
    }
    if (!unreadable) await removeGone();
    return true;
  }

  async function pullByIds(): Promise<void> {
    const ids = new Set([...((await idsWithoutList?.()) ?? []), ...(await mirror.ids(kind))]);
    const missing = await fetchAndWrite([], [...ids]);
    for (const id of missing) onAbsent(`GET ${kind.item}${id}: the upstream has no such record.`);
  }

  /** Sorts a page into the records to write, and the ids of those that have to be asked for one by one. */
  async function readPage(page: readonly Item[]): Promise<{ records: MirrorRecord[]; ids: number[] }> {
    const listed: MirrorRecord[] = [];
    const unclear: number[] = [];
    for (const { id, item } of page) {
      if (id !== undefined) seen.add(id);
      const { data: record, error } = (kind.summary ?? kind.record).safeParse(item);
      if (record) listed.push(record);
      // A list that leaves out fields is no fault, as long as the record by id has them.
      else if (id !== undefined && !kind.summary) unclear.push(id);
      else
        skip(id === undefined ? `${kind.list}, a record` : `${kind.list}, record ${id}`, firstIssue(error));
    }
    for (const record of listed) onListed?.(record);
    const differing = await mirror.differing(kind, listed);
    const needed = listed.filter(({ row }) => (full && kind.summary) || differing.has(row.id));
    tally.fetched += listed.length - needed.length;
    tally.unchanged += listed.length - needed.length;
    onAdvanced();
    return kind.summary
      ? { records: [], ids: needed.map(({ row }) => row.id) }
      : { records: needed, ids: unclear };
  }

  /** Returns the ids that the upstream has no record for. */
  async function fetchAndWrite(records: readonly MirrorRecord[], ids: readonly number[]): Promise<number[]> {
    tally.fetched += records.length;
    const missing: number[] = [];
    const fetched = await pMap(
      ids,
      async (id) => {
        const record = await fetchOne(id);
        if (record === 'missing') {
          missing.push(id);
          return [];
        }
        if (record) tally.fetched++;
        onAdvanced();
        return record ? [record] : [];
      },
      { concurrency, signal },
    );
    const rejected = ({ row }: MirrorRecord, why: string) => {
      tally.skipped++;
      context.onSkipped(`${kind.item}${row.id}`, why);
    };
    add(tally, await mirror.write(kind, [...records, ...fetched.flat()], rejected));
    onAdvanced();
    return missing;
  }

  /** Undefined for a record that has to be skipped. */
  async function fetchOne(id: number): Promise<MirrorRecord | 'missing' | undefined> {
    const path = `${kind.item}${id}`;
    try {
      const { data: record, error } = kind.record.safeParse(await upstream.get(path, signal));
      if (record?.row.id === id) return record;
      skip(path, record ? `id: is ${record.row.id}` : firstIssue(error));
    } catch (error) {
      if (isMissing(error)) return 'missing';
      if (!(error instanceof HttpError)) throw error;
      skip(path, `it answered ${error.status}`);
    }
    return undefined;
  }

  /** Asks once more for each record that the list lacks, since a list that changes while it is read can hide one. */
  async function removeGone(): Promise<void> {
    const unseen = (await mirror.ids(kind)).filter((id) => !seen.has(id));
    const responses = await pMap(unseen, fetchOne, { concurrency, signal });
    const gone = unseen.filter((_id, index) => responses[index] === 'missing');
    if (gone.length > 0) await mirror.remove(kind, gone);
    tally.gone += gone.length;
  }

  function skip(where: string, why: string): void {
    unreadable = true;
    tally.skipped++;
    context.onSkipped(where, why);
  }
}

/** The first thing that is wrong, with the field that it is wrong about. */
export function firstIssue(error: z.ZodError | undefined): string {
  const [issue] = error?.issues ?? [];
  if (!issue) return 'is not valid';
  return issue.path.length > 0 ? `${issue.path.join('.')}: ${issue.message}` : issue.message;
}
