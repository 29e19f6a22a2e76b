/**
 * What a list says of a record whose details it leaves out. A digest of that is stored with the record: while the list says the
 * same, the record is as it was, however the list rounds or shortens values.
 */

import { createHash } from 'node:crypto';
import type pg from 'pg';
import { withOwner } from './library.ts';
import type { Kind, MirrorRecord, Row } from './records.ts';

/** The columns in which two accounts may see the same template differently. */
const ownerColumns = new Set(['ownerId', 'foreignOwnerId']);

/** Returns a record of a list as it is stored until its details are read. */
export function pendingRecord(record: MirrorRecord): MirrorRecord {
  const { row, children } = record;
  return {
    ...record,
    row: { ...row, detailsPending: true, listedDigest: listedDigest(record) },
    // Of the segments of a session a list says neither the place nor the time. Those of a template it leaves out whole.
    ...(children && { children: children.map((child, order) => ({ ...child, order, createdAt: null })) }),
  };
}

function listedDigest({ row, children = [] }: MirrorRecord): string {
  const common = Object.entries(row).filter(([name]) => !ownerColumns.has(name));
  const ordered = [...children].sort((one, other) => one.id - other.id);
  return createHash('sha256')
    .update(JSON.stringify([common, ordered]))
    .digest('base64url');
}

/** The columns of a stored record that tell whether a list says something new of it. */
export type Held = Row & { readonly listedDigest: string | null };
export type HeldRecords = ReadonlyMap<number, Pick<Held, 'listedDigest'>>;

/** Whether a list says of a record what it said before. @param held undefined if the account does not have the record. */
export function isUnchanged(held: Row | undefined, record: MirrorRecord, accountId: number): boolean {
  if (held?.listedDigest !== record.row.listedDigest) return false;
  const { row } = withOwner(record, held, accountId);
  return held?.ownerId === row.ownerId && held?.foreignOwnerId === row.foreignOwnerId;
}

/** The account's templates, or those of its sessions that have these ids; none of kinds whose lists leave out nothing. */
export async function readHeld(
  pool: pg.Pool,
  { table, summary }: Kind,
  accountId: number,
  ids: readonly number[],
): Promise<ReadonlyMap<number, Held>> {
  if (!summary) return new Map();
  const { rows } = await (table === 'DttTemplate'
    ? pool.query<Held>(
        `SELECT id, "listedDigest", "ownerId", "foreignOwnerId" FROM "DttTemplate"
         JOIN "DttLibraryEntry" ON "templateId" = id WHERE "userId" = $1`,
        [accountId],
      )
    : pool.query<Held>(
        `SELECT id, "listedDigest", "ownerId" FROM "${table}" WHERE "ownerId" = $1 AND id = ANY($2)`,
        [accountId, ids],
      ));
  return new Map(rows.map((row) => [row.id, row]));
}
