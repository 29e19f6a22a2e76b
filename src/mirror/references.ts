/**
 * The trainer and the template of a session. A session refers to them by a foreign key if the account has them here, and by
 * their number alone if not, such as to a trainer that was deleted.
 */

import type pg from 'pg';
import type { Kind, MirrorRecord } from './records.ts';

type Table = 'DttDevice' | 'DttTemplate';

/** The column of the foreign key, and the column for the number of a record that is not here. */
const columns: Record<Table, { key: string; gone: string }> = {
  DttDevice: { key: 'trainerId', gone: 'goneTrainerId' },
  DttTemplate: { key: 'templateId', gone: 'goneTemplateId' },
};
const tables = ['DttDevice', 'DttTemplate'] as const;
const isReferredTo = (table: string): table is Table => table in columns;

/** Selects which of the given trainers or templates the account has. Those of other accounts do not count. */
const had: Record<Table, string> = {
  DttDevice: 'SELECT id FROM "DttDevice" WHERE "ownerId" = $2 AND id = ANY($1)',
  DttTemplate:
    'SELECT "templateId" AS id FROM "DttLibraryEntry" WHERE "userId" = $2 AND "templateId" = ANY($1)',
};

/** Returns the sessions with foreign keys to what the account has here, and numbers of what it has not. */
export async function withReferences(
  client: pg.Pool | pg.PoolClient,
  { table }: Kind,
  records: readonly MirrorRecord[],
  accountId: number,
): Promise<readonly MirrorRecord[]> {
  if (table !== 'DttSession' || records.length === 0) return records;
  let resolved = records;
  for (const referred of tables) {
    const { key, gone } = columns[referred];
    const numbers = [...new Set(resolved.map(({ row }) => row[key]))].filter((number) => number != null);
    const { rows } = await client.query<{ id: number }>(had[referred], [numbers, accountId]);
    const here = new Set<unknown>(rows.map(({ id }) => id));
    resolved = resolved.map((record) => {
      const number = record.row[key] ?? null;
      const place = here.has(number) ? { [key]: number, [gone]: null } : { [key]: null, [gone]: number };
      return { ...record, row: { ...record.row, ...place } };
    });
  }
  return resolved;
}

/** Turns numbers into foreign keys in the account's sessions, for records that the account has from now on. */
export async function refer(
  client: pg.PoolClient,
  table: string,
  ids: readonly number[],
  accountId: number,
): Promise<void> {
  if (!isReferredTo(table) || ids.length === 0) return;
  const { key, gone } = columns[table];
  await client.query(
    `UPDATE "DttSession" SET "${key}" = "${gone}", "${gone}" = NULL WHERE "ownerId" = $2 AND "${gone}" = ANY($1)`,
    [ids, accountId],
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
  const { key, gone } = columns[table];
  await client.query(
    `UPDATE "DttSession" SET "${gone}" = "${key}", "${key}" = NULL WHERE "ownerId" = $2 AND "${key}" = ANY($1)`,
    [ids, accountId],
  );
}
