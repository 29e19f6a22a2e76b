/** Writes records into the mirror, and removes them. Each write is one transaction. */

import pg from 'pg';
import { inTransaction } from '../database/transaction.ts';
import type { Kind, MirrorRecord, Row } from './records.ts';
import { dereference, refer, withReferences } from './references.ts';
import { findDiffering, insert, upsert } from './rows.ts';
import { add, type Counts } from './tally.ts';

/** Told of each record that the database does not take, with the reason. */
export type OnRejected = (record: MirrorRecord, reason: string) => void;

/** Runs something in a transaction, such as one that only the run that holds the mirror may have. */
export type Transaction = <T>(run: (client: pg.PoolClient) => Promise<T>) => Promise<T>;

export const transactionOn =
  (pool: pg.Pool): Transaction =>
  (run) =>
    inTransaction(pool, run);

/**
 * Writes the records in one transaction. If the database rejects any of them, such as for an identifier that
 * another record has, each gets a transaction of its own, so that one bad record does not keep out the others.
 */
export async function writeRecords(
  transaction: Transaction,
  kind: Kind,
  records: readonly MirrorRecord[],
  accountId: number,
  onRejected: OnRejected,
): Promise<Counts> {
  if (records.length === 0) return { created: 0, updated: 0, unchanged: 0 };
  try {
    return await transaction((client) => replaceRecords(client, kind, records, accountId));
  } catch (error) {
    if (!isAboutData(error)) throw error;
    const [record, ...others] = records;
    if (record && others.length === 0) {
      onRejected(record, error.detail ?? error.message);
      return { created: 0, updated: 0, unchanged: 0 };
    }
  }
  const total = { created: 0, updated: 0, unchanged: 0 };
  for (const record of records) {
    add(total, await writeRecords(transaction, kind, [record], accountId, onRejected));
  }
  return total;
}

/** Whether the database found fault with a value: the classes 21, 22 and 23 (PostgreSQL, "Error Codes"). */
export function isAboutData(error: unknown): error is pg.DatabaseError {
  return error instanceof pg.DatabaseError && /^2[123]/.test(error.code ?? '');
}

async function replaceRecords(
  client: pg.PoolClient,
  kind: Kind,
  given: readonly MirrorRecord[],
  accountId: number,
): Promise<Counts> {
  const records = await withReferences(client, kind, given);
  const differing = await findDiffering(client, kind, records);
  const changed = records.filter(({ row }) => differing.has(row.id));
  if (changed.length === 0) return { created: 0, updated: 0, unchanged: records.length };
  const ids = changed.map(({ row }) => row.id);
  const rows = changed.map(({ row }) => row);
  const held = await client.query<{ id: number }>(`SELECT id FROM "${kind.table}" WHERE id = ANY($1)`, [ids]);
  const known = new Set(held.rows.map(({ id }) => id));

  if (kind.table === 'LockSession') await deactivateOthers(client, rows, accountId);
  await upsert(client, kind.table, rows, kind.untold);
  if (kind.table === 'DttTemplate') await addImports(client, ids, accountId);
  await refer(
    client,
    kind.table,
    ids.filter((id) => !known.has(id)),
  );
  // What a record does not say of its children leaves them as they are.
  const parents = changed.filter(({ children }) => children !== undefined);
  if (kind.children && parents.length > 0) {
    const { table, parent } = kind.children;
    const parentIds = parents.map(({ row }) => row.id);
    await client.query(`DELETE FROM "${table}" WHERE "${parent}" = ANY($1)`, [parentIds]);
    // A plain insert: an id that a segment of another record has must not be taken from it.
    await insert(
      client,
      table,
      parents.flatMap(({ children = [] }) => children),
    );
  }

  return {
    created: changed.length - known.size,
    updated: known.size,
    unchanged: records.length - changed.length,
  };
}

/**
 * Deactivates the lock sessions that stand in the way of one that becomes active. At most one is active, and the index that
 * says so looks at each row as it is written, not at the end of the statement.
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

/** A template of somebody else that the account can read is one that it has imported. */
async function addImports(client: pg.PoolClient, ids: readonly number[], accountId: number): Promise<void> {
  await client.query(
    `INSERT INTO "DttLibraryEntry" ("userId", "templateId")
     SELECT $2, id FROM "DttTemplate" WHERE id = ANY($1) AND "foreignOwnerId" IS NOT NULL ON CONFLICT DO NOTHING`,
    [ids, accountId],
  );
}

/** Removes records. Sessions go on naming the trainer and the template that they were done with, as they do upstream. */
export async function removeRecords(
  client: pg.PoolClient,
  { table }: Kind,
  ids: readonly number[],
): Promise<void> {
  // First of all, as an activation does.
  if (table === 'DttTemplate')
    await client.query('SELECT FROM "DttTemplate" WHERE id = ANY($1) FOR UPDATE', [ids]);
  await dereference(client, table, ids);
  await client.query(`DELETE FROM "${table}" WHERE id = ANY($1)`, [ids]);
}
