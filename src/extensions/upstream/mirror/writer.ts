/**
 * Writes and removes records of the mirror, for all runs and requests. Each write is one transaction: a run that is cut off leaves nothing
 * half-written. A record that became outdated after it was requested is not written.
 */

import pg from 'pg';
import type { Transaction } from '../../../database/transaction.ts';
import { addImports, dereference, endImports, link, removeTemplates } from './library.ts';
import { asStored, type HeldRecords, isNews, isUnchanged } from './pending.ts';
import { acquireSharedLock, idsOf, insert, type Kind, type MirrorRecord, type Row, upsert } from './rows.ts';

interface WriteOptions {
  readonly kind: Kind;
  readonly records: readonly MirrorRecord[];
  readonly accountId: number;
  onRejected(record: MirrorRecord, reason: string): void;
  /**
   * The records as they were here when the upstream was asked. Details are written only to records that are still the same, and
   * pending. If undefined, all records are written.
   */
  readonly asked?: HeldRecords | undefined;
}

/**
 * Writes the records in one transaction. If the database rejects any of them, such as for an identifier that
 * another record has, each gets a transaction of its own, so that one bad record does not keep out the others.
 * @returns how many were written.
 */
export async function writeRecords(transaction: Transaction, options: WriteOptions): Promise<number> {
  const { records, onRejected } = options;
  if (records.length === 0) return 0;
  try {
    const { written, rejected } = await transaction((client) => replaceRecords(client, options));
    for (const record of rejected) onRejected(record, 'another account has it here');
    return written;
  } catch (error) {
    if (!isAboutData(error)) throw error;
    const [record, ...others] = records;
    if (record && others.length === 0) {
      onRejected(record, error.detail ?? error.message);
      return 0;
    }
  }
  let written = 0;
  for (const record of records) written += await writeRecords(transaction, { ...options, records: [record] });
  return written;
}

/** Whether the database rejected a value: the classes 21, 22 and 23 (PostgreSQL, "Error Codes"). */
function isAboutData(error: unknown): error is pg.DatabaseError {
  return error instanceof pg.DatabaseError && /^2[123]/.test(error.code ?? '');
}

async function replaceRecords(
  client: pg.PoolClient,
  { kind, records, accountId, asked }: WriteOptions,
): Promise<{ written: number; rejected: readonly MirrorRecord[] }> {
  const { table } = kind;
  if (table === 'DttTemplate') await acquireSharedLock(client);
  const { rows } = await client.query<Row>(
    `SELECT * FROM "${table}" WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE`,
    [idsOf(records)],
  );
  const held = new Map(rows.map((row) => [row.id, row]));
  const heldOf = ({ row }: MirrorRecord) => held.get(row.id);
  const awaited = records.filter((record) => isAwaited(record.row, heldOf(record), asked));
  const claimed = await claimRecords(client, kind, awaited, held, accountId);
  const stored = claimed.map((record) => asStored(record, heldOf(record), accountId));
  const current = stored.filter((record) => !isOlder(record.row, heldOf(record), asked));
  // Details are written even if nothing has changed: that ends their pending state.
  const written = current.filter(
    (record) => !record.row.detailsPending || !isUnchanged(heldOf(record), record, accountId),
  );
  if (written.length > 0) await replaceRows(client, kind, written, accountId);
  if (table === 'DttTemplate') {
    const isShown = (record: MirrorRecord) => current.includes(record) || heldOf(record)?.isPublic === true;
    await addImports(client, idsOf(stored.filter(isShown)), accountId);
    const isPrivateNews = (record: MirrorRecord) => !record.row.isPublic && isNews(heldOf(record), record);
    await endImports(client, idsOf(current.filter(isPrivateNews)), accountId);
  }
  await link(client, table, accountId);
  return { written: written.length, rejected: awaited.filter((record) => !claimed.includes(record)) };
}

const isAsAsked = (id: number, held: Row | undefined, asked: HeldRecords | undefined) =>
  held?.listedDigest === asked?.get(id)?.listedDigest;

/** Whether the row of a record still waits for these details. Always true for records that are no details. */
const isAwaited = (row: Row, held: Row | undefined, asked: HeldRecords | undefined) =>
  !asked || row.detailsPending !== false || (held?.detailsPending === true && isAsAsked(row.id, held, asked));

/**
 * Whether a template is older than the one here: the run of another account that sees it has written a later version after this one
 * was requested.
 */
const isOlder = (row: Row, held: Row | undefined, asked: HeldRecords | undefined) =>
  !isAsAsked(row.id, held, asked) && timeOf(held?.updatedAt) > timeOf(row.updatedAt);

const timeOf = (value: Row[string]) =>
  typeof value === 'string' || value instanceof Date ? new Date(value).getTime() : 0;

/**
 * Makes sure that the account owns the records. If another account has a record here whose `ownerId` is this account, it has moved
 * upstream, and is removed from the other account. A DTT session names no owner, so a session of another account is left out.
 * @returns the records that the account may have.
 */
async function claimRecords(
  client: pg.PoolClient,
  { table }: Kind,
  records: readonly MirrorRecord[],
  held: ReadonlyMap<number, Row>,
  accountId: number,
): Promise<readonly MirrorRecord[]> {
  const ownerOf = ({ row }: MirrorRecord) => held.get(row.id)?.ownerId ?? accountId;
  const ofOthers = records.filter((record) => ownerOf(record) !== accountId);
  if (table === 'DttSession') return records.filter((record) => !ofOthers.includes(record));
  // A template stays, but sessions of its previous owner keep only its number.
  const take = table === 'DttTemplate' ? dereference : removeRows;
  for (const record of ofOthers.filter(({ row }) => row.ownerId === accountId))
    await take(client, table, [record.row.id], Number(ownerOf(record)));
  return records;
}

async function replaceRows(
  client: pg.PoolClient,
  { table, children }: Kind,
  changed: readonly MirrorRecord[],
  accountId: number,
): Promise<void> {
  const rows = changed.map(({ row }) => row);
  const active = rows.filter(({ isActive }) => isActive).map(({ id }) => id);
  // A unique index allows an account one active lock session, and PostgreSQL checks it row by row, not at the end of the statement.
  if (table === 'LockSession' && active.length > 0)
    await client.query(
      'UPDATE "LockSession" SET "isActive" = false WHERE "ownerId" = $1 AND "isActive" AND id <> ALL ($2)',
      [accountId, active],
    );
  await upsert(client, table, rows);
  // The children of a record that has none in the response stay as they are.
  const parents = changed.filter((record) => record.children !== undefined);
  if (!children || parents.length === 0) return;
  await client.query(`DELETE FROM "${children.table}" WHERE "${children.parent}" = ANY($1)`, [
    idsOf(parents),
  ]);
  // A plain insert, which fails if a segment of another record has the same id, and takes nothing from that record.
  await insert(
    client,
    children.table,
    parents.flatMap((record) => record.children ?? []),
  );
}

/** Removes records that the account no longer has. Sessions keep the numbers of removed trainers and templates, as upstream. */
export async function removeRecords(
  client: pg.PoolClient,
  { table }: Kind,
  ids: readonly number[],
  accountId: number,
): Promise<void> {
  if (table !== 'DttTemplate') return removeRows(client, table, ids, accountId);
  await acquireSharedLock(client);
  await removeTemplates(client, ids, accountId);
}

async function removeRows(
  client: pg.PoolClient,
  table: Kind['table'],
  ids: readonly number[],
  ownerId: number,
): Promise<void> {
  await dereference(client, table, ids, ownerId);
  await client.query(`DELETE FROM "${table}" WHERE id = ANY($1) AND "ownerId" = $2`, [ids, ownerId]);
}
