/**
 * Templates that several accounts may see: each template is one row, with an entry in the library of every account that lists
 * it. Only the list of the owner's own account makes that account the owner of the row. What a private template says is shown to
 * another account only if its own list says the same: the owner may have ended the import at the upstream.
 */

import type pg from 'pg';
import type { MirrorRecord, Row } from './rows.ts';

/**
 * Returns a template with the owner that it has here. The list of an account decides who owns a template only if the account is
 * the owner, or no account of this mirror is.
 * @param held the template as it is here.
 */
export function withOwner(record: MirrorRecord, held: Row | undefined, accountId: number): MirrorRecord {
  const ownerId = held?.ownerId;
  if (ownerId == null || ownerId === accountId || record.row.ownerId === accountId) return record;
  return { ...record, row: { ...record.row, ownerId, foreignOwnerId: null } };
}

/** Adds templates to an account's library. If the account can read a template of another owner, it has imported it. */
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

/**
 * Ends the imports of templates by all accounts but the one that was told what they say now. Another account imports them again when
 * its own list says the same.
 */
export async function endImports(
  client: pg.PoolClient,
  ids: readonly number[],
  accountId: number,
): Promise<void> {
  const { rows } = await client.query<{ userId: number; ids: number[] }>(
    `SELECT "userId", array_agg("templateId") AS ids FROM "DttLibraryEntry"
     WHERE "templateId" = ANY($1) AND "userId" <> $2 AND "importedAt" IS NOT NULL GROUP BY "userId"`,
    [ids, accountId],
  );
  for (const imports of rows) await removeTemplates(client, imports.ids, imports.userId);
}

/** Removes templates from an account's library, and deletes those that no other account has imported. */
export async function removeTemplates(
  client: pg.PoolClient,
  ids: readonly number[],
  accountId: number,
): Promise<void> {
  // An activation locks the template first too. The same order avoids deadlocks.
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

/** By the tables that sessions refer to: the foreign key, the number, and a condition that the account has the record. */
const references = {
  DttDevice: {
    key: 'trainerId',
    gone: 'goneTrainerId',
    isHad: 'SELECT FROM "DttDevice" AS device WHERE device.id = "goneTrainerId" AND device."ownerId" = $1',
  },
  DttTemplate: {
    key: 'templateId',
    gone: 'goneTemplateId',
    isHad:
      'SELECT FROM "DttLibraryEntry" AS entry WHERE entry."templateId" = "goneTemplateId" AND "userId" = $1',
  },
} as const;

/** Turns numbers into foreign keys in the account's sessions, if the account has the records now. */
export async function link(client: pg.PoolClient, table: string, accountId: number): Promise<void> {
  for (const [referred, { key, gone, isHad }] of Object.entries(references))
    if (table === referred || table === 'DttSession')
      await client.query(
        `UPDATE "DttSession" SET "${key}" = "${gone}", "${gone}" = NULL WHERE "ownerId" = $1 AND EXISTS (${isHad})`,
        [accountId],
      );
}

/** Turns foreign keys into numbers in the account's sessions, for records that the account no longer has. */
export async function dereference(
  client: pg.PoolClient,
  table: string,
  ids: readonly number[],
  accountId: number,
): Promise<void> {
  for (const [referred, { key, gone }] of Object.entries(references))
    if (table === referred)
      await client.query(
        `UPDATE "DttSession" SET "${gone}" = "${key}", "${key}" = NULL WHERE "ownerId" = $2 AND "${key}" = ANY($1)`,
        [ids, accountId],
      );
}
