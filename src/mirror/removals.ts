/** Removes records that are missing from a list. A list that changes while it is read can hide one, so each is first fetched by its id. */

import pMap from 'p-map';
import { AnotherAccount, UpstreamBusy, UpstreamError } from '../upstream/upstream.ts';
import { concurrency } from './fetchRecord.ts';
import type { Item } from './list.ts';
import type { Mirror } from './mirror.ts';
import type { RecordCounts } from './recordCounts.ts';
import type { Kind, MirrorRecord } from './records.ts';

/** How many records that are missing from a list are fetched in one run. */
const maxUnseen = 100;

/** A list that was read, and what it takes to find out which of the missing records are gone. */
export interface PulledList {
  readonly kind: Kind;
  readonly mirror: Mirror;
  /** The ids that were seen in the list. */
  readonly listed: ReadonlySet<number>;
  readonly full: boolean;
  readonly signal: AbortSignal;
  readonly counts: RecordCounts;
  /** Fetches a record by its id. Undefined for one that cannot be read. */
  fetch(id: number): Promise<MirrorRecord | 'missing' | undefined>;
}

/** Whether an error concerns the whole run, and not only the record that was fetched. */
export const endsRun = (error: unknown): boolean =>
  !(error instanceof UpstreamError) || error instanceof UpstreamBusy || error instanceof AnotherAccount;

/**
 * Removes the records that are missing from a list that was read to its end.
 * @returns whether all missing records were checked: the next run that reads the whole list goes on with the rest.
 */
export async function removeGone(lacking: PulledList): Promise<boolean> {
  const { kind, mirror, listed, signal, full } = lacking;
  const ids = (await mirror.ids(kind)).filter((id) => !listed.has(id));
  // After a fault that cuts a list short, checking all records would take more requests than an upstream allows.
  const unseen = full ? ids : ids.slice(0, maxUnseen);
  const gone = await pMap(unseen, (id) => isGone(lacking, id), { concurrency, signal });
  await remove(
    lacking,
    unseen.filter((_id, index) => gone[index]),
  );
  return unseen.length === ids.length;
}

/**
 * Removes the sessions that are missing from the list as far down as it was read. It stops at the first session that exists all
 * the same: then the list has another order, or leaves some out, and checking all of them at every run would be too much.
 * @param lowest what was read last of the list; all of it unless given.
 */
export async function removeGoneDownTo(
  lacking: PulledList,
  lowest: readonly Item[] | undefined,
): Promise<void> {
  const ids = await lacking.mirror.sessionsDownTo(lowest?.flatMap(({ id }) => id ?? []));
  const gone: number[] = [];
  for (const id of ids.filter((each) => !lacking.listed.has(each)).slice(0, maxUnseen)) {
    if (!(await isGone(lacking, id))) break;
    gone.push(id);
  }
  await remove(lacking, gone);
}

/** Whether a record is gone upstream. A record that cannot be read is not known to be gone, and does not end the run. */
async function isGone({ fetch }: PulledList, id: number): Promise<boolean> {
  try {
    return (await fetch(id)) === 'missing';
  } catch (error) {
    if (endsRun(error)) throw error;
    return false;
  }
}

async function remove({ kind, mirror, counts }: PulledList, gone: readonly number[]): Promise<void> {
  if (gone.length > 0) await mirror.remove(kind, gone);
  counts.gone += gone.length;
}
