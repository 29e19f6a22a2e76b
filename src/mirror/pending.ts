/**
 * Records whose details are pending: the mirror has what a list says of them, and not yet what only the record by its id has.
 * The column `detailsPending` marks them, so that the next run goes on where a run was cut off.
 */

import type pg from 'pg';
import { listedDigest } from './listed.ts';
import type { Kind, MirrorRecord } from './records.ts';

/** A record of a list as it is written until its details are read. */
export function pendingRecord(record: MirrorRecord): MirrorRecord {
  const { row, children, ...others } = record;
  return {
    ...others,
    row: { ...row, detailsPending: true, listedDigest: listedDigest(record) },
    // Of the segments of a session a list says neither the place nor the time. Those of a template it leaves out whole.
    ...(children && { children: children.map((child, order) => ({ ...child, order, createdAt: null })) }),
  };
}

/** A record with its details, without the column that says that it has them, to compare it with a row that has not. */
export const withoutNote = (record: MirrorRecord): MirrorRecord => ({
  ...record,
  row: { ...record.row, detailsPending: undefined },
});

export interface PendingQuery {
  /** The greatest number of ids; all unless given. */
  readonly limit?: number;
  readonly without?: readonly number[];
}

/** The ids of the records that the account can read and whose details are pending: the active template first, then the newest. */
export async function readPending(
  client: pg.Pool | pg.PoolClient,
  { table }: Kind,
  accountId: number,
  { limit, without = [] }: PendingQuery,
): Promise<number[]> {
  const { rows } = await client.query<{ id: number }>(
    `${table === 'DttTemplate' ? pendingTemplates : pendingSessions} LIMIT $2`,
    [accountId, limit ?? null, without],
  );
  return rows.map(({ id }) => id);
}

/** The ids of those records whose details are still pending. */
export async function readStillPending(
  client: pg.Pool | pg.PoolClient,
  { table }: Kind,
  ids: readonly number[],
): Promise<Set<number>> {
  const { rows } = await client.query<{ id: number }>(
    `SELECT id FROM "${table}" WHERE id = ANY($1) AND "detailsPending"`,
    [ids],
  );
  return new Set(rows.map(({ id }) => id));
}

const pendingTemplates = `SELECT template.id FROM "DttTemplate" AS template
  JOIN "DttLibraryEntry" AS entry ON entry."templateId" = template.id
  JOIN "User" AS account ON account.id = entry."userId"
  WHERE account.id = $1 AND template."detailsPending" AND template.id <> ALL ($3)
  ORDER BY template.id IS DISTINCT FROM account."activeTemplateId", template."createdDate" DESC, template.id DESC`;

const pendingSessions = `SELECT id FROM "DttSession" WHERE "ownerId" = $1 AND "detailsPending" AND id <> ALL ($3)
  ORDER BY "createdAt" DESC, id DESC`;

/** Marks the details of records as pending. */
export async function notePending(
  client: pg.PoolClient,
  { table }: Kind,
  ids: readonly number[],
): Promise<void> {
  await client.query(
    `UPDATE "${table}" SET "detailsPending" = true WHERE id = ANY($1) AND NOT "detailsPending"`,
    [ids],
  );
}

/**
 * Marks the details of records as not pending, since the upstream denies them to the account. Those of a template that another
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
