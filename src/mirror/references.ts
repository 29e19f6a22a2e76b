/**
 * What sessions refer to: the trainer and the template that they were done with, by a key if these are here, and by their
 * number alone if they are not, such as a trainer that was deleted since.
 */

import type pg from 'pg';
import type { Kind, MirrorRecord } from './records.ts';

type Table = 'DttDevice' | 'DttTemplate';

/** The column of a key, and the one for the number of what is gone. */
const columns: Record<Table, { key: string; gone: string }> = {
  DttDevice: { key: 'trainerId', gone: 'goneTrainerId' },
  DttTemplate: { key: 'templateId', gone: 'goneTemplateId' },
};
const tables = ['DttDevice', 'DttTemplate'] as const;
const isReferredTo = (table: string): table is Table => table in columns;

/** The records with keys to what is here, and numbers of what is not. */
export async function withReferences(
  client: pg.Pool | pg.PoolClient,
  { table }: Kind,
  records: readonly MirrorRecord[],
): Promise<readonly MirrorRecord[]> {
  if (table !== 'DttSession' || records.length === 0) return records;
  let resolved = records;
  for (const referred of tables) {
    const { key, gone } = columns[referred];
    const numbers = [...new Set(resolved.map(({ row }) => row[key]))].filter((number) => number != null);
    const { rows } = await client.query<{ id: number }>(`SELECT id FROM "${referred}" WHERE id = ANY($1)`, [
      numbers,
    ]);
    const here = new Set<unknown>(rows.map(({ id }) => id));
    resolved = resolved.map((record) => {
      const number = record.row[key] ?? null;
      const place = here.has(number) ? { [key]: number, [gone]: null } : { [key]: null, [gone]: number };
      return { ...record, row: { ...record.row, ...place } };
    });
  }
  return resolved;
}

/** Gives the sessions that name these, which are new here, by their numbers keys to them. */
export async function refer(client: pg.PoolClient, table: string, ids: readonly number[]): Promise<void> {
  if (!isReferredTo(table) || ids.length === 0) return;
  const { key, gone } = columns[table];
  await client.query(
    `UPDATE "DttSession" SET "${key}" = "${gone}", "${gone}" = NULL WHERE "${gone}" = ANY($1)`,
    [ids],
  );
}

/** Leaves to the sessions that name these the numbers alone. */
export async function dereference(
  client: pg.PoolClient,
  table: string,
  ids: readonly number[],
): Promise<void> {
  if (!isReferredTo(table)) return;
  const { key, gone } = columns[table];
  await client.query(
    `UPDATE "DttSession" SET "${gone}" = "${key}", "${key}" = NULL WHERE "${key}" = ANY($1)`,
    [ids],
  );
}
