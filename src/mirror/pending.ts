/**
 * Records whose details are pending: the mirror has what a list says of them, and not yet what only the record by its id has.
 * The column `detailsPending` marks them, so that the next run goes on where a run was cut off.
 */

import type pg from 'pg';
import type { HeldRecords } from './listed.ts';
import type { Kind } from './records.ts';

/** The ids of the records that the account can read and whose details are pending: the active template first, then the newest. */
export async function readPending(
  pool: pg.Pool,
  { table }: Pick<Kind, 'table'>,
  accountId: number,
): Promise<number[]> {
  const { rows } = await pool.query<{ id: number }>(
    table === 'DttTemplate'
      ? `SELECT template.id FROM "DttTemplate" AS template
         JOIN "DttLibraryEntry" AS entry ON entry."templateId" = template.id
         JOIN "User" AS account ON account.id = entry."userId"
         WHERE account.id = $1 AND template."detailsPending"
         ORDER BY template.id IS DISTINCT FROM account."activeTemplateId", template."createdDate" DESC, template.id DESC`
      : `SELECT id FROM "DttSession" WHERE "ownerId" = $1 AND "detailsPending" ORDER BY "createdAt" DESC, id DESC`,
    [accountId],
  );
  return rows.map(({ id }) => id);
}

/** Those of the records that are still pending, as they are now. */
export async function readStillPending(
  pool: pg.Pool,
  { table }: Kind,
  ids: readonly number[],
): Promise<HeldRecords> {
  const { rows } = await pool.query<{ id: number; listedDigest: string | null }>(
    `SELECT id, "listedDigest" FROM "${table}" WHERE id = ANY($1) AND "detailsPending"`,
    [ids],
  );
  return new Map(rows.map((row) => [row.id, row]));
}

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
