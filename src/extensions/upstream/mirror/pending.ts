/**
 * Records whose details are pending: the mirror has the fields of the list, but not yet those that only the record by its id has.
 * The column `detailsPending` marks them, so that the next run continues where a run was cut off.
 */

import { createHash } from 'node:crypto';
import type pg from 'pg';
import { withOwner } from './library.ts';
import { isReadable, type Kind, type MirrorRecord, type Row, selectIds } from './rows.ts';

/** The columns of a segment that a list of sessions includes, so that they are known before its details. */
export const segmentSummary = {
  id: true,
  type: true,
  passed: true,
  percentGrade: true,
  points: true,
} as const;

/** The ids of the records that the account can read and whose details are pending, the newest first. */
export const readPending = (pool: pg.Pool, { table }: Pick<Kind, 'table'>, accountId: number) =>
  selectIds(
    pool,
    `SELECT id FROM "${table}" WHERE ${isReadable(table)} AND "detailsPending"
     ORDER BY "${table === 'DttTemplate' ? 'createdDate' : 'createdAt'}" DESC, id DESC`,
    [accountId],
  );

/**
 * Marks the details of records as not pending, since the upstream does not give them to the account. Those of a template that another
 * account has stay pending.
 */
export async function noteDenied(
  client: pg.PoolClient,
  { table }: Kind,
  ids: readonly number[],
  accountId: number,
): Promise<void> {
  const others = 'SELECT FROM "DttLibraryEntry" WHERE "templateId" = "DttTemplate".id AND "userId" <> $2';
  await client.query(
    `UPDATE "${table}" SET "detailsPending" = false WHERE id = ANY($1) AND "detailsPending"
       AND ${table === 'DttTemplate' ? `NOT EXISTS (${others})` : '"ownerId" = $2'}`,
    [ids, accountId],
  );
}

/** Returns a record of a list as it is stored until its details are read. */
export function pendingRecord(record: MirrorRecord): MirrorRecord {
  const { row, children } = record;
  return {
    ...record,
    row: { ...row, detailsPending: true, listedDigest: listedDigest(record) },
    // A list has the segments of a session without their place and time. It has no segments of a template.
    ...(children && { children: children.map((child, order) => ({ ...child, order, createdAt: null })) }),
  };
}

function listedDigest({ row, children = [] }: MirrorRecord): string {
  // Who owns a template is compared separately.
  const common = Object.entries(row).filter(([name]) => name !== 'ownerId');
  const ordered = [...children].sort((one, other) => one.id - other.id);
  return createHash('sha256')
    .update(JSON.stringify([common, ordered]))
    .digest('base64url');
}

/** Stored records by their ids, with the columns that tell whether a list says something new of them. */
export type HeldRecords = ReadonlyMap<number, Row>;

const digestsOf = (row: Row | undefined) => String(row?.listedDigest ?? '').split(' ');

/**
 * Returns a record as it is to be stored, with the digest of what it says and, where the list and the record by its id differ, that of
 * the other. A list that says the other one again may be newer: the details are read once more, and kept if they are the same.
 */
export function asStored(record: MirrorRecord, held: Row | undefined, accountId: number): MirrorRecord {
  const owned = withOwner(record, held, accountId);
  const { detailsPending, listedDigest: said } = owned.row;
  const [stored, other] = digestsOf(held);
  if (!said || said === stored || (detailsPending && said !== other)) return owned;
  const both = said === other && !detailsPending ? [stored, said] : [said, stored];
  return { ...owned, row: { ...owned.row, listedDigest: both.join(' ') } };
}

/** Whether a record, as it is to be stored, says what it has not said before. */
export const isNews = (held: Row | undefined, { row }: MirrorRecord) =>
  digestsOf(row).some((digest) => !digestsOf(held).includes(digest));

/** Whether a list says of a record what it said before. @param held undefined if the account does not have the record. */
export function isUnchanged(held: Row | undefined, record: MirrorRecord, accountId: number): boolean {
  if (digestsOf(held)[0] !== digestsOf(record.row)[0]) return false;
  const { row } = withOwner(record, held, accountId);
  return held?.ownerId === row.ownerId && held?.foreignOwnerId === row.foreignOwnerId;
}

/** The records with these ids, or all, that the account can read; none for kinds whose lists are complete. */
export async function readHeld(
  pool: pg.Pool,
  { table, summary }: Kind,
  accountId: number,
  ids?: readonly number[],
): Promise<HeldRecords> {
  if (!summary) return new Map();
  const { rows } = await pool.query<Row>(
    `SELECT * FROM "${table}" WHERE ${isReadable(table)} AND ($2::int[] IS NULL OR id = ANY($2))`,
    [accountId, ids],
  );
  return new Map(rows.map((row) => [row.id, row]));
}
