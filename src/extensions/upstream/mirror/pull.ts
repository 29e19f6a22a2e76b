/**
 * Reads the lists of an account, part by part: writes new and changed records, and removes missing ones. Details that a list leaves out
 * are then pending: details.ts reads them.
 */

import type pg from 'pg';
import { z } from 'zod';
import { getOptional, isNotOffered } from '../client/upstream.ts';
import { areSessionsComplete, noteMissingSessions } from './accountFreshness.ts';
import { recordId } from './fields.ts';
import { kinds, parseRecord } from './kinds.ts';
import { endsRun, fetchRecord, type Item, readPages } from './list.ts';
import { writeUser } from './mirror.ts';
import { type HeldRecords, isUnchanged, readHeld } from './pending.ts';
import { findDiffering, idsOf, isReadable, type Kind, type MirrorRecord, selectIds } from './rows.ts';
import type { Run } from './run.ts';
import { removeRecords, writeRecords } from './writer.ts';

/**
 * Pulls the list of a kind, and removes records that are gone from it.
 * @param onPage called with the number of new and changed records of a page, before they are written. Returns whether to read no further.
 * @returns the ids of active templates, and whether all records that may be gone were checked.
 * @throws {UpstreamError} when the list cannot be read. The pages before are in the mirror then.
 */
async function pullKind(run: Run, kind: Kind, onPage?: (news: number) => Promise<boolean>) {
  const { pool, account, upstream, signal, report } = run;
  const counts = report.countsOf(kind.name);
  const listed = new Set<number>();
  const active = new Set<number>();
  let lowest: readonly Item[] | undefined;
  try {
    // Only templates are shared with other accounts, whose runs may write them from here on.
    const templates = kind.table === 'DttTemplate' ? await readHeld(pool, kind, account.id) : undefined;
    for await (const { items, isLast } of readPages(upstream, kind.list, signal, !kind.isOptional)) {
      for (const { id } of items) if (id !== undefined) listed.add(id);
      const records = readPage(run, kind, items);
      for (const { row, isActive } of records) if (isActive) active.add(row.id);
      const held = templates ?? (await readHeld(pool, kind, account.id, idsOf(records)));
      const news = await findNews(run, kind, records, held);
      counts.fetched += records.length;
      if (await onPage?.(news.length)) {
        lowest = isLast ? [] : items;
        break;
      }
      await write(run, kind, news, held);
    }
  } catch (error) {
    if (!kind.isOptional || listed.size > 0 || !isNotOffered(error)) throw error;
    report.notes.push(`GET ${kind.list} is not offered: it responded with ${error.status}.`);
    return { active, areAllChecked: true };
  }
  return { active, areAllChecked: await removeMissing(run, kind, listed, lowest) };
}

function readPage({ account, report }: Run, kind: Kind, items: readonly Item[]): MirrorRecord[] {
  return items.flatMap(({ id, item }) => {
    const record = parseRecord(kind.summary ?? kind.record, kind, item, account.id);
    if (typeof record !== 'string') return [record];
    const which = id === undefined ? 'a record' : `record ${id}`;
    report.skip(kind.name, `${kind.list}, ${which}`, record);
    return [];
  });
}

/** Returns the records that are new or changed. A full run marks the details of all others as pending. */
async function findNews(
  { pool, account, full, transaction }: Run,
  kind: Kind,
  records: readonly MirrorRecord[],
  held: HeldRecords,
): Promise<readonly MirrorRecord[]> {
  if (kind.summary) {
    const isSame = (record: MirrorRecord) => isUnchanged(held.get(record.row.id), record, account.id);
    const again = `UPDATE "${kind.table}" SET "detailsPending" = true WHERE id = ANY($1)`;
    if (full) await transaction((client) => client.query(again, [idsOf(records.filter(isSame))]));
    return records.filter((record) => !isSame(record));
  }
  const differing = await findDiffering(pool, kind, records);
  return records.filter(({ row }) => differing.has(row.id));
}

async function write(
  { account, transaction, confirm, report }: Run,
  kind: Kind,
  records: readonly MirrorRecord[],
  asked?: HeldRecords,
): Promise<void> {
  if (records.length === 0) return;
  if (kind.summary) await confirm();
  report.countsOf(kind.name).written += await writeRecords(transaction, {
    kind,
    records,
    accountId: account.id,
    onRejected: ({ row }, why) => report.skip(kind.name, `${kind.list}, record ${row.id}`, why),
    asked,
  });
}

/** How many records that are missing from a list are fetched in one run. */
const maxMissing = 100;

/**
 * Removes the records that are missing from a list and cannot be fetched by id: a list that changes while it is read can hide one.
 * @param listed the ids that the list has.
 * @param lowest set if reading has stopped at a page without news: that page, or empty if it was the last. Then only sessions down to
 * that page are checked, up to the first that still exists. The list may have another order or leave some out, and checking
 * all of them at every run would take too many requests.
 * @returns whether all were checked. If a fault cuts the list short, that takes more requests than an upstream allows.
 */
async function removeMissing(
  run: Run,
  kind: Kind,
  listed: ReadonlySet<number>,
  lowest?: readonly Item[],
): Promise<boolean> {
  const { pool, transaction, account, full, confirm, report } = run;
  const ids = await readIds(pool, kind, account.id, lowest);
  const missing = ids.filter((id) => !listed.has(id));
  const checked = full ? missing : missing.slice(0, maxMissing);
  const gone: number[] = [];
  for (const id of checked) {
    if (await confirmGone(run, kind, id)) gone.push(id);
    else if (lowest) break;
  }
  if (gone.length > 0) {
    await confirm();
    await transaction((client) => removeRecords(client, kind, gone, account.id));
  }
  report.countsOf(kind.name).gone += gone.length;
  return checked.length === missing.length;
}

/**
 * The ids of all records of a kind that the account can read. With a page of sessions, only those of sessions that are newer than all of
 * these, or of all if the account has none of them; newest first.
 */
function readIds(
  pool: pg.Pool,
  { table }: Kind,
  accountId: number,
  page?: readonly Item[],
): Promise<number[]> {
  if (!page) return selectIds(pool, `SELECT id FROM "${table}" WHERE ${isReadable(table)}`, [accountId]);
  return selectIds(
    pool,
    `SELECT id FROM "DttSession" WHERE "ownerId" = $1 AND "createdAt" >
       coalesce((SELECT min("createdAt") FROM "DttSession" WHERE id = ANY($2) AND "ownerId" = $1), '-infinity')
     ORDER BY "createdAt" DESC, id DESC`,
    [accountId, page.flatMap(({ id }) => id ?? [])],
  );
}

/**
 * Fetches a record, and returns whether it is gone. One that cannot be read is not known to be, and is noted in the report, or is
 * left to the next run.
 */
async function confirmGone(
  { account, upstream, signal, report }: Run,
  kind: Kind,
  id: number,
): Promise<boolean> {
  try {
    const record = await fetchRecord(upstream, kind, id, account.id, signal);
    if (typeof record === 'string') report.skip(kind.name, `${kind.list}/${id}`, record);
    return record === undefined;
  } catch (error) {
    if (endsRun(error)) throw error;
    return false;
  }
}

/**
 * Pulls the lists of an account, and marks the details of records that are new or changed as pending. Records that others refer to come first.
 * @returns whether the mirror has all sessions now, if it was not known to have them before.
 * @throws {UpstreamError} when the upstream cannot be used, {SetupError} when another run has taken over.
 */
export async function pullLists(run: Run): Promise<boolean> {
  const counts = run.report.countsOf('user');
  if (await run.transaction((client) => writeUser(client, run.account))) counts.written++;
  counts.fetched++;
  await pullKind(run, kinds.dttDevices);
  await pullTemplates(run);
  await pullKind(run, kinds.lkbxDevices);
  await pullLocks(run);
  await pullKind(run, kinds.ossmDevices);
  return pullSessions(run);
}

/** Pulls templates, and finds the active one. */
export async function pullTemplates(run: Run): Promise<void> {
  const { pool, account, transaction, confirm, report } = run;
  const { active } = await pullKind(run, kinds.dttTemplates);
  const [id = null, ...others] = active;
  // Two are active only if one was activated while the list was read, and a skipped record may be active as well. Then only the next
  // run can tell.
  const isKnown =
    others.length === 0 && (id !== null || report.countsOf(kinds.dttTemplates.name).skipped === 0);
  const [here = null] = await selectIds(pool, 'SELECT "activeTemplateId" AS id FROM "User" WHERE id = $1', [
    account.id,
  ]);
  if (isKnown && here !== id) {
    await confirm();
    await transaction((client) =>
      client.query(
        `UPDATE "User" SET "activeTemplateId" = $2 WHERE id = $1
         AND ($2::int IS NULL OR EXISTS (SELECT FROM "DttLibraryEntry" WHERE "userId" = $1 AND "templateId" = $2))`,
        [account.id, id],
      ),
    );
  }
}

/** Pulls lock templates and sessions, and ties the active session to the template that it was started from. */
async function pullLocks(run: Run): Promise<void> {
  const { account, upstream, signal, transaction } = run;
  await pullKind(run, kinds.lockTemplates);
  await pullKind(run, kinds.lockSessions);
  const response = await getOptional(upstream, '/lkbx/templates/active', signal);
  // Null if no session is active. Any other response without an id does not tell.
  const id = response === null ? null : z.object({ id: recordId }).safeParse(response).data?.id;
  if (id === undefined) return;
  await transaction((client) =>
    client.query(
      `UPDATE "LockSession" SET "templateId" = $2 WHERE "ownerId" = $1 AND "isActive" AND "templateId" IS DISTINCT FROM $2
       AND ($2::int IS NULL OR EXISTS (SELECT FROM "LockTemplate" WHERE id = $2 AND "ownerId" = $1))`,
      [account.id, id],
    ),
  );
}

/**
 * Pulls sessions, newest first. Reading stops at a page that has nothing new, if the mirror is known to have all older sessions:
 * after a run that was cut off, some older ones may be missing.
 */
async function pullSessions(run: Run): Promise<boolean> {
  const { pool, account, transaction, full, confirm } = run;
  const wasComplete = await areSessionsComplete(pool, account.id);
  let hasNews = false;
  const { areAllChecked } = await pullKind(run, kinds.dttSessions, async (news) => {
    if (news === 0) return wasComplete && !full;
    if (!hasNews) await noteMissingSessions(transaction, account.id);
    hasNews = true;
    return false;
  });
  if (wasComplete && !hasNews) return false;
  await confirm();
  // Also if some records were skipped: otherwise every run would read the whole list.
  return areAllChecked;
}
