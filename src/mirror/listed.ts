/**
 * Tells whether a list says something new of a record that the mirror has. A list may say less than the record by its id: it
 * may round numbers, cut off decimals, or leave out fractions of a second. The mirror stores the more exact values, so they
 * cannot tell alone what is new, and a digest of what the list said last is stored with each record.
 */

import { createHash } from 'node:crypto';
import type pg from 'pg';
import type { Kind, MirrorRecord, Row } from './records.ts';
import { isInstant, keepExactValues } from './rounding.ts';
import { findDiffering } from './rows.ts';
import { acquireSharedLock } from './sharedLock.ts';
import type { Transaction } from './writer.ts';

/** Columns in which a template has the same owner otherwise for another account. */
const ownerColumns = new Set(['ownerId', 'foreignOwnerId']);

/** Texts and flags are never less exact in a list. */
const inexactValues = (row: Row) =>
  Object.entries(row).filter(
    ([name, value]) => (typeof value === 'number' || isInstant(value)) && !ownerColumns.has(name),
  );

/** A digest of the numbers and times that a list has of a record. */
export function listedDigest({ row, children = [] }: MirrorRecord): string {
  const ordered = [...children].sort((one, other) => one.id - other.id);
  return createHash('sha256')
    .update(JSON.stringify([row, ...ordered].map(inexactValues)))
    .digest('base64url');
}

/**
 * The ids of the records of which a list says something new.
 * @param listed the records as the list has them.
 * @param written the same records as they would be written.
 */
export async function findNewInList(
  pool: pg.Pool,
  kind: Kind,
  listed: readonly MirrorRecord[],
  written: readonly MirrorRecord[],
): Promise<Set<number>> {
  const differing = await findDiffering(pool, kind, written);
  const before = await readDigests(pool, kind, [...differing]);
  const now = new Map(listed.map((record) => [record.row.id, listedDigest(record)]));
  const isSame = (id: number) => before.get(id) === now.get(id);
  const saysOthers = ({ row: { id } }: MirrorRecord) => before.get(id) != null && !isSame(id);

  const others = written.filter(({ row }) => differing.has(row.id));
  const isNew = new Set(others.filter(saysOthers).map(({ row }) => row.id));
  const inexact = others.filter(({ row }) => !isNew.has(row.id));
  // Where it is not known what the list said before, a list is taken to round, and not to cut off.
  const exact = await keepExactValues(pool, kind, inexact, ({ id }) => (isSame(id) ? 1 : 0.5));
  for (const id of await findDiffering(pool, kind, exact)) isNew.add(id);
  return isNew;
}

async function readDigests(
  pool: pg.Pool,
  { table }: Kind,
  ids: readonly number[],
): Promise<ReadonlyMap<number, string | null>> {
  const { rows } = await pool.query<{ id: number; listedDigest: string | null }>(
    `SELECT id, "listedDigest" FROM "${table}" WHERE id = ANY($1)`,
    [ids],
  );
  return new Map(rows.map((row) => [row.id, row.listedDigest]));
}

/** Stores the digests of records of which a list says nothing new, where they are not stored already. */
export async function storeDigests(
  pool: pg.Pool,
  transaction: Transaction,
  { table }: Kind,
  listed: readonly MirrorRecord[],
): Promise<void> {
  const given = JSON.stringify(
    listed.map((record) => ({ id: record.row.id, listedDigest: listedDigest(record) })),
  );
  const outdated = `json_to_recordset($1) AS given (id int, "listedDigest" text)
    WHERE held.id = given.id AND held."listedDigest" IS DISTINCT FROM given."listedDigest"`;
  const { rowCount } = await pool.query(`SELECT FROM "${table}" AS held, ${outdated} LIMIT 1`, [given]);
  if (rowCount === 0) return;
  await transaction(async (client) => {
    if (table === 'DttTemplate') await acquireSharedLock(client);
    await client.query(
      `UPDATE "${table}" AS held SET "listedDigest" = given."listedDigest" FROM ${outdated}`,
      [given],
    );
  });
}
