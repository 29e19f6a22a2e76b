/** Removes records that are missing from a list. A list that changes while it is read can hide one, so each is first fetched by its id. */

import { AnotherAccount, UpstreamBusy, UpstreamError } from '../upstream/upstream.ts';
import { readIds, readSessionsDownTo } from './accountRows.ts';
import type { Item } from './list.ts';
import { fetchNoted, type Run } from './pull.ts';
import type { Kind } from './records.ts';
import { removeRecords } from './writer.ts';

/** How many records that are missing from a list are fetched in one run. */
const maxMissing = 100;

/** Whether an error concerns the whole run, and not only the record that was fetched. */
export const endsRun = (error: unknown): boolean =>
  !(error instanceof UpstreamError) || error instanceof UpstreamBusy || error instanceof AnotherAccount;

/**
 * Removes the records that are missing from a list, and by their ids as well.
 * @param listed the ids that the list has.
 * @param lowest the last page that was read, or nothing for the end of the list, if reading has stopped because nothing was new. Then
 * only sessions down to there are checked, up to the first that exists all the same: the list may have another order, or leave some
 * out, and to check all of them at every run would be too much.
 * @returns whether all were checked. After a fault that cuts a list short, that would take more requests than an upstream allows.
 */
export async function removeMissing(
  run: Run,
  kind: Kind,
  listed: ReadonlySet<number>,
  lowest?: readonly Item[],
): Promise<boolean> {
  const { pool, transaction, account, full, confirm, report } = run;
  const ids = lowest
    ? await readSessionsDownTo(
        pool,
        account.id,
        lowest.flatMap(({ id }) => id ?? []),
      )
    : await readIds(pool, kind, account.id);
  const missing = ids.filter((id) => !listed.has(id));
  const checked = full ? missing : missing.slice(0, maxMissing);
  const gone: number[] = [];
  for (const id of checked) {
    if (await isGone(run, kind, id)) gone.push(id);
    else if (lowest) break;
  }
  if (gone.length > 0) {
    await confirm();
    await transaction((client) => removeRecords(client, kind, gone, account.id));
  }
  report.countsOf(kind.name).gone += gone.length;
  return checked.length === missing.length;
}

/** A record that cannot be read is not known to be gone, and does not end the run. */
async function isGone(run: Run, kind: Kind, id: number): Promise<boolean> {
  try {
    return (await fetchNoted(run, kind, id)) === 'missing';
  } catch (error) {
    if (endsRun(error)) throw error;
    return false;
  }
}
