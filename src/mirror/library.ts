/**
 * Templates, which several accounts may see: one row, which its owner's listing alone gives to somebody, and an entry in
 * the library of each account that lists it.
 */

import type pg from 'pg';
import type { MirrorRecord } from './records.ts';
import { dereference } from './references.ts';

/**
 * The templates with the owners that they have here. What an account says of its own templates counts, and of those of
 * somebody else only if their owner is nobody here.
 */
export async function withOwners(
  client: pg.Pool | pg.PoolClient,
  records: readonly MirrorRecord[],
  accountId: number,
): Promise<readonly MirrorRecord[]> {
  const { rows } = await client.query<{ id: number; ownerId: number }>(
    'SELECT id, "ownerId" FROM "DttTemplate" WHERE id = ANY($1) AND "ownerId" <> $2',
    [records.map(({ row }) => row.id), accountId],
  );
  const owners = new Map(rows.map(({ id, ownerId }) => [id, ownerId]));
  return records.map((record) => {
    const ownerId = owners.get(record.row.id);
    if (ownerId === undefined || record.row.ownerId === accountId) return record;
    return { ...record, row: { ...record.row, ownerId, foreignOwnerId: null } };
  });
}

/** Those of the templates that are in the account's library. */
export async function inLibrary(
  client: pg.Pool | pg.PoolClient,
  ids: readonly number[],
  accountId: number,
): Promise<Set<number>> {
  const { rows } = await client.query<{ id: number }>(
    'SELECT "templateId" AS id FROM "DttLibraryEntry" WHERE "userId" = $2 AND "templateId" = ANY($1)',
    [ids, accountId],
  );
  return new Set(rows.map(({ id }) => id));
}

/** Leaves to the sessions of those who own these now the numbers alone: another account has them from here on. */
export async function takeTemplates(client: pg.PoolClient, ids: readonly number[]): Promise<void> {
  await client.query(
    `UPDATE "DttSession" AS session SET "goneTemplateId" = "templateId", "templateId" = NULL
     FROM "DttTemplate" AS template
     WHERE template.id = ANY($1) AND "templateId" = template.id AND session."ownerId" = template."ownerId"`,
    [ids],
  );
}

/** A template of somebody else that the account can read is one that it has imported. */
export async function addImports(
  client: pg.PoolClient,
  ids: readonly number[],
  accountId: number,
): Promise<void> {
  await client.query(
    `INSERT INTO "DttLibraryEntry" ("userId", "templateId")
     SELECT $2, id FROM "DttTemplate" WHERE id = ANY($1) AND "ownerId" IS DISTINCT FROM $2 ON CONFLICT DO NOTHING`,
    [ids, accountId],
  );
}

/** Takes templates out of an account's library. What others have imported stays theirs, and the rest goes. */
export async function removeTemplates(
  client: pg.PoolClient,
  ids: readonly number[],
  accountId: number,
): Promise<void> {
  // First of all, as an activation does.
  await client.query('SELECT FROM "DttTemplate" WHERE id = ANY($1) ORDER BY id FOR UPDATE', [ids]);
  await dereference(client, 'DttTemplate', ids, accountId);
  await client.query(
    `UPDATE "DttTemplate" AS template SET "ownerId" = NULL, "foreignOwnerId" = "ownerId"
     WHERE id = ANY($1) AND "ownerId" = $2
       AND EXISTS (SELECT FROM "DttLibraryEntry" WHERE "templateId" = template.id AND "userId" <> $2)`,
    [ids, accountId],
  );
  await client.query(
    'DELETE FROM "DttLibraryEntry" WHERE "userId" = $2 AND "templateId" = ANY($1) AND "importedAt" IS NOT NULL',
    [ids, accountId],
  );
  await client.query(
    `DELETE FROM "DttTemplate" AS template WHERE id = ANY($1) AND ("ownerId" = $2
       OR "ownerId" IS NULL AND NOT EXISTS (SELECT FROM "DttLibraryEntry" WHERE "templateId" = template.id))`,
    [ids, accountId],
  );
}
