/** Reads the ids of an account's records, and reads and sets which of its templates is active. */

import type pg from 'pg';
import type { Kind } from './records.ts';
import type { Transaction } from './writer.ts';

export async function readIds(pool: pg.Pool, { table }: Kind, accountId: number): Promise<number[]> {
  const { rows } = await pool.query<{ id: number }>(
    table === 'DttTemplate'
      ? 'SELECT "templateId" AS id FROM "DttLibraryEntry" WHERE "userId" = $1'
      : `SELECT id FROM "${table}" WHERE "ownerId" = $1`,
    [accountId],
  );
  return rows.map(({ id }) => id);
}

export async function readSessionsDownTo(
  pool: pg.Pool,
  accountId: number,
  lowest: readonly number[] | undefined,
): Promise<number[]> {
  const { rows } = await pool.query<{ id: number }>(
    `SELECT id FROM "DttSession" WHERE "ownerId" = $1 AND ($2::int[] IS NULL OR "createdAt" >
       (SELECT min("createdAt") FROM "DttSession" WHERE id = ANY($2) AND "ownerId" = $1))
     ORDER BY "createdAt" DESC, id DESC`,
    [accountId, lowest],
  );
  return rows.map(({ id }) => id);
}

export async function readActiveTemplate(pool: pg.Pool, accountId: number): Promise<number | null> {
  const { rows } = await pool.query<{ id: number | null }>(
    'SELECT "activeTemplateId" AS id FROM "User" WHERE id = $1',
    [accountId],
  );
  return rows[0]?.id ?? null;
}

export async function readVersion(pool: pg.Pool, accountId: number): Promise<string> {
  const { rows } = await pool.query<{ version: string }>(
    'SELECT xmin::text AS version FROM "User" WHERE id = $1',
    [accountId],
  );
  return rows[0]?.version ?? '';
}

export function setActiveTemplate(
  transaction: Transaction,
  accountId: number,
  id: number | null,
  before: string,
): Promise<boolean> {
  return changesRows(
    transaction,
    `UPDATE "User" SET "activeTemplateId" = $2 WHERE id = $1 AND ("activeTemplateId" IS NULL OR xmin::text = $3)
     AND "activeTemplateId" IS DISTINCT FROM $2 AND ($2::int IS NULL OR EXISTS (SELECT FROM "DttLibraryEntry" WHERE "userId" = $1 AND "templateId" = $2))`,
    [accountId, id, before],
  );
}

export function setActiveLockTemplate(
  transaction: Transaction,
  accountId: number,
  id: number | null,
): Promise<boolean> {
  return changesRows(
    transaction,
    `UPDATE "LockSession" SET "templateId" = $2 WHERE "ownerId" = $1 AND "isActive"
     AND "templateId" IS DISTINCT FROM $2 AND ($2::int IS NULL OR EXISTS (SELECT FROM "LockTemplate" WHERE id = $2 AND "ownerId" = $1))`,
    [accountId, id],
  );
}

/** Runs a statement, and returns whether it has changed any row. */
export async function changesRows(
  transaction: Transaction,
  sql: string,
  values: readonly unknown[],
): Promise<boolean> {
  return transaction(async (client) => ((await client.query(sql, [...values])).rowCount ?? 0) > 0);
}
