/** The rows of an account itself: the ids of its records, its active templates, and how far it was read. */

import type pg from 'pg';
import type { Transaction } from '../../../database/transaction.ts';
import { type Kind, selectIds } from './rows.ts';

/** The ids of all records of a kind that the account can read. */
export const readIds = (pool: pg.Pool, { table }: Kind, accountId: number): Promise<number[]> =>
  selectIds(
    pool,
    table === 'DttTemplate'
      ? 'SELECT "templateId" AS id FROM "DttLibraryEntry" WHERE "userId" = $1'
      : `SELECT id FROM "${table}" WHERE "ownerId" = $1`,
    [accountId],
  );

/** The ids of the account's sessions that are newer than all of the given ones, or all if it has none of these. Newest first. */
export const readSessionsDownTo = (pool: pg.Pool, accountId: number, lowest: readonly number[]) =>
  selectIds(
    pool,
    `SELECT id FROM "DttSession" WHERE "ownerId" = $1 AND "createdAt" >
       coalesce((SELECT min("createdAt") FROM "DttSession" WHERE id = ANY($2) AND "ownerId" = $1), '-infinity')
     ORDER BY "createdAt" DESC, id DESC`,
    [accountId, lowest],
  );

export async function readActiveTemplate(pool: pg.Pool, accountId: number): Promise<number | null> {
  const [id] = await selectIds(pool, 'SELECT "activeTemplateId" AS id FROM "User" WHERE id = $1', [
    accountId,
  ]);
  return id ?? null;
}

/** Points the account at its active template. */
export const setActiveTemplate = (transaction: Transaction, accountId: number, id: number | null) =>
  transaction((client) =>
    client.query(
      `UPDATE "User" SET "activeTemplateId" = $2 WHERE id = $1
       AND ($2::int IS NULL OR EXISTS (SELECT FROM "DttLibraryEntry" WHERE "userId" = $1 AND "templateId" = $2))`,
      [accountId, id],
    ),
  );

/** Ties the active lock session to the template that it was started from. */
export const setActiveLockTemplate = (transaction: Transaction, accountId: number, id: number | null) =>
  transaction((client) =>
    client.query(
      `UPDATE "LockSession" SET "templateId" = $2 WHERE "ownerId" = $1 AND "isActive"
       AND "templateId" IS DISTINCT FROM $2 AND ($2::int IS NULL OR EXISTS (SELECT FROM "LockTemplate" WHERE id = $2 AND "ownerId" = $1))`,
      [accountId, id],
    ),
  );

/** Whether the mirror is known to have every session that is older than its newest one. */
export async function areSessionsComplete(pool: pg.Pool, accountId: number): Promise<boolean> {
  const { rowCount } = await pool.query(
    'SELECT FROM "MirroredAccount" WHERE "userId" = $1 AND "sessionsComplete"',
    [accountId],
  );
  return rowCount === 1;
}

/**
 * Notes whether the mirror has all older sessions. A run cannot know that if a client has written since the run began.
 * @param mark of the last write before it.
 */
export const noteSessions = (
  transaction: Transaction,
  accountId: number,
  isComplete: boolean,
  mark?: number,
) =>
  transaction((client) =>
    client.query(
      `UPDATE "MirroredAccount" SET "sessionsComplete" = $2
       WHERE "userId" = $1 AND (NOT $2 OR "writtenAt" IS NOT DISTINCT FROM $3)`,
      [accountId, isComplete, mark === undefined ? undefined : new Date(mark)],
    ),
  );
