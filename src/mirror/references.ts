/**
 * The trainer and the template of a session. A session refers to them by a foreign key if the account has them here, and by
 * their number alone if not, such as to a trainer that was deleted. Sessions are written with numbers, and linked afterwards.
 */

import type pg from 'pg';

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

const isReferredTo = (table: string): table is keyof typeof references => table in references;

/** Turns numbers into foreign keys in the account's sessions, where it has the records by now. */
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
  if (!isReferredTo(table)) return;
  const { key, gone } = references[table];
  await client.query(
    `UPDATE "DttSession" SET "${gone}" = "${key}", "${key}" = NULL WHERE "ownerId" = $2 AND "${key}" = ANY($1)`,
    [ids, accountId],
  );
}
