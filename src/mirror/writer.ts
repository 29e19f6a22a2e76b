/** Writes records into the mirror, and removes records from it. Each write is one transaction. */

import pg from 'pg';
import { inTransaction } from '../database/transaction.ts';
import { addImports, inLibrary, removeTemplates, takeTemplates, withOwners } from './library.ts';
import { addWriteCounts, type WriteCounts } from './recordCounts.ts';
import type { Kind, MirrorRecord, Row } from './records.ts';
import { dereference, refer, withReferences } from './references.ts';
import { findDiffering, insert, upsert } from './rows.ts';
import { acquireSharedLock } from './sharedLock.ts';
import { type Versions, withoutOutdated } from './versions.ts';

/** Called for each record that is not written, with the reason. */
export type OnRejected = (record: MirrorRecord, reason: string) => void;

/** Runs a function in a transaction, such as one that only the holder of the account's lease can begin. */
export type Transaction = <T>(run: (client: pg.PoolClient) => Promise<T>) => Promise<T>;

export const transactionOn =
  (pool: pg.Pool): Transaction =>
  (run) =>
    inTransaction(pool, run);

/** The result of a write. */
interface Written {
  readonly counts: WriteCounts;
  /** The records that the account cannot have, with the reason. */
  readonly rejected: readonly { readonly record: MirrorRecord; readonly reason: string }[];
}

const nothing = { created: 0, updated: 0, unchanged: 0 };

export interface WriteOptions {
  readonly kind: Kind;
  readonly records: readonly MirrorRecord[];
  /** The account that the records were read for. */
  readonly accountId: number;
  readonly onRejected: OnRejected;
  /** As in `withoutOutdated`; nothing is outdated unless given. */
  readonly asked?: Versions | undefined;
}

/**
 * Writes the records in one transaction. If the database rejects any of them, such as for an identifier that
 * another record has, each gets a transaction of its own, so that one bad record does not keep out the others.
 */
export async function writeRecords(transaction: Transaction, options: WriteOptions): Promise<WriteCounts> {
  const { records, onRejected } = options;
  if (records.length === 0) return nothing;
  try {
    const { counts, rejected } = await transaction((client) => replaceRecords(client, options));
    for (const { record, reason } of rejected) onRejected(record, reason);
    return counts;
  } catch (error) {
    if (!isAboutData(error)) throw error;
    const [record, ...others] = records;
    if (record && others.length === 0) {
      onRejected(record, error.detail ?? error.message);
      return nothing;
    }
  }
  const total = { ...nothing };
  for (const record of records) {
    addWriteCounts(total, await writeRecords(transaction, { ...options, records: [record] }));
  }
  return total;
}

/** Whether the database found fault with a value: the classes 21, 22 and 23 (PostgreSQL, "Error Codes"). */
export function isAboutData(error: unknown): error is pg.DatabaseError {
  return error instanceof pg.DatabaseError && /^2[123]/.test(error.code ?? '');
}

async function replaceRecords(
  client: pg.PoolClient,
  { kind, records: given, accountId, asked }: WriteOptions,
): Promise<Written> {
  const { table } = kind;
  if (table === 'DttTemplate') await acquireSharedLock(client);
  const claimed = await claimRecords(client, kind, given, accountId);
  const { known } = claimed;
  const records = await recordsAsStored(client, kind, claimed.records, accountId);
  const differing = await findDiffering(client, kind, records);
  const otherwise = records.filter(({ row }) => differing.has(row.id));
  const changed = asked ? await withoutOutdated(client, kind, otherwise, asked) : otherwise;
  const isNew = records.filter(({ row }) => !known.has(row.id)).map(({ row }) => row.id);

  if (changed.length > 0) await replaceRows(client, kind, changed, accountId);
  if (table === 'DttTemplate' && changed.length + isNew.length > 0)
    await addImports(
      client,
      records.map(({ row }) => row.id),
      accountId,
    );
  await refer(client, table, isNew, accountId);

  const updated = changed.filter(({ row }) => known.has(row.id)).length;
  return {
    counts: { created: isNew.length, updated, unchanged: records.length - isNew.length - updated },
    rejected: claimed.rejected,
  };
}

/** Returns the records as they are stored: templates with the owners that they have here, sessions with foreign keys to what is here. */
export async function recordsAsStored(
  client: pg.Pool | pg.PoolClient,
  kind: Kind,
  records: readonly MirrorRecord[],
  accountId: number,
): Promise<readonly MirrorRecord[]> {
  if (kind.table === 'DttTemplate') return withOwners(client, records, accountId);
  return withReferences(client, kind, records, accountId);
}

/**
 * Makes sure that the account can have the records. A record that another account has here, and whose `ownerId` is this account's,
 * has moved upstream: it is removed from the other account. A DTT session names no owner, so that one of another account is rejected.
 * @returns the ids that the account had before, and the records that it can have.
 */
async function claimRecords(
  client: pg.PoolClient,
  { table }: Kind,
  records: readonly MirrorRecord[],
  accountId: number,
): Promise<{ known: Set<number>; records: readonly MirrorRecord[]; rejected: Written['rejected'] }> {
  const ids = records.map(({ row }) => row.id);
  const { rows } = await client.query<{ id: number; ownerId: number | null }>(
    `SELECT id, "ownerId" FROM "${table}" WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE`,
    [ids],
  );
  const ofOthers = new Set(
    rows.filter(({ ownerId }) => ownerId !== null && ownerId !== accountId).map(({ id }) => id),
  );
  if (table === 'DttTemplate') {
    const taken = records.filter(({ row }) => row.ownerId === accountId && ofOthers.has(row.id));
    if (taken.length > 0)
      await takeTemplates(
        client,
        taken.map(({ row }) => row.id),
      );
    return { known: await inLibrary(client, ids, accountId), records, rejected: [] };
  }
  const known = new Set(rows.filter(({ id }) => !ofOthers.has(id)).map(({ id }) => id));
  if (ofOthers.size === 0) return { known, records, rejected: [] };
  if (table === 'DttSession') {
    return {
      known,
      records: records.filter(({ row }) => !ofOthers.has(row.id)),
      rejected: records
        .filter(({ row }) => ofOthers.has(row.id))
        .map((record) => ({ record, reason: 'another account has it here' })),
    };
  }
  for (const { id, ownerId } of rows)
    if (ownerId !== null && ofOthers.has(id)) await removeRows(client, table, [id], ownerId);
  return { known, records, rejected: [] };
}

/** Adds rows or changes them, with the rows that belong to them. */
async function replaceRows(
  client: pg.PoolClient,
  { table, children, nullUntilKnown }: Kind,
  changed: readonly MirrorRecord[],
  accountId: number,
): Promise<void> {
  const rows = changed.map(({ row }) => row);
  if (table === 'LockSession') await deactivateOthers(client, rows, accountId);
  await upsert(client, table, rows, nullUntilKnown);
  // The children of a record that has none in the response stay as they are.
  const parents = changed.filter((record) => record.children !== undefined);
  if (!children || parents.length === 0) return;
  await client.query(`DELETE FROM "${children.table}" WHERE "${children.parent}" = ANY($1)`, [
    parents.map(({ row }) => row.id),
  ]);
  // A plain insert, which fails if a segment of another record has the same id, and takes nothing from that record.
  await insert(
    client,
    children.table,
    parents.flatMap((record) => record.children ?? []),
  );
}

/**
 * Deactivates the other lock sessions of an account before one becomes active. A unique index allows one active session, and
 * PostgreSQL checks it row by row, not at the end of the statement.
 */
async function deactivateOthers(
  client: pg.PoolClient,
  rows: readonly Row[],
  accountId: number,
): Promise<void> {
  const active = rows.filter((row) => row.isActive).map(({ id }) => id);
  if (active.length === 0) return;
  await client.query(
    'UPDATE "LockSession" SET "isActive" = false WHERE "ownerId" = $1 AND "isActive" AND id <> ALL ($2)',
    [accountId, active],
  );
}

/** Removes records that the account no longer has. Sessions go on naming removed trainers and templates by number, as upstream. */
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
