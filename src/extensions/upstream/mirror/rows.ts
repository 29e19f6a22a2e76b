/**
 * What a kind of records is (`kinds.ts` has all), and the rows of its records. Reads and writes these rows in the columns that each
 * has: a field that a response leaves out is left out of the row as well, so that the mirror keeps its value.
 */

import type pg from 'pg';
import type { z } from 'zod';
import { columnsOf } from '../../../database/dataModel.ts';
import type { ListedType, ModelName } from '../../../database/models.ts';

type Value = string | number | boolean | Date | null | undefined;
export type Row = { id: number } & Record<string, Value>;

export interface MirrorRecord {
  readonly row: Row;
  /** The rows that belong to it, such as the segments of a session. */
  readonly children?: readonly Row[];
  /** Only templates: whether it is the account's active one. */
  readonly isActive?: boolean;
}

/** A kind of records: the paths that the upstream has for them, the schemas that read them, and the tables that store them. */
export interface Kind {
  readonly name: string;
  readonly table: ListedType;
  /** The table of the rows that belong to its records, such as segments, and the column with the id of the record. */
  readonly children?: { readonly table: ModelName; readonly parent: string };
  /** The path of the list. The path of a record has its id after it. */
  readonly list: string;
  /** Whether an upstream may lack the list, which is not documented. */
  readonly isOptional?: true;
  /**
   * The schema of a record in a list that leaves out details: only the record by its id has them. Both kinds that have one do not
   * prove the owner: a template may belong to any account, and a DTT session names no owner.
   */
  readonly summary?: z.ZodType<MirrorRecord>;
  /** The schema of a record by its id, and in a list that leaves out nothing. */
  readonly record: z.ZodType<MirrorRecord>;
}

export const idsOf = (records: readonly Pick<MirrorRecord, 'row'>[]) => records.map(({ row }) => row.id);

/**
 * Returns the ids of those records that the table does not have, or has with another value in a column that the record has. A
 * record also differs when its children do.
 */
export async function findDiffering(
  client: pg.Pool | pg.PoolClient,
  { table, children }: Pick<Kind, 'children'> & { table: ModelName },
  records: readonly Pick<MirrorRecord, 'row' | 'children'>[],
): Promise<Set<number>> {
  const own = { table, parent: 'id', rows: records.map(({ row }) => row) };
  const parts = children && { ...children, rows: records.flatMap((record) => record.children ?? []) };
  const differing = new Set<number>();
  for (const { table, parent, rows } of parts ? [own, parts] : [own]) {
    const ids = await selectIds(
      client,
      `SELECT coalesce((given.value->>'${parent}')::int, held."${parent}") AS id
       FROM jsonb_array_elements($1::jsonb) AS given
       FULL JOIN (SELECT * FROM "${table}" WHERE "${parent}" = ANY($2)) AS held ON held.id = (given.value->>'id')::int
       WHERE held.id IS NULL OR given.value IS NULL
         OR jsonb_populate_record(held::"${table}", given.value) IS DISTINCT FROM held::"${table}"`,
      [JSON.stringify(rows), idsOf(records)],
    );
    for (const id of ids) differing.add(id);
  }
  return differing;
}

/** A condition on the records of a table: that the account `$1` can read them. */
export const isReadable = (table: ListedType) =>
  table === 'DttTemplate'
    ? 'id IN (SELECT "templateId" FROM "DttLibraryEntry" WHERE "userId" = $1)'
    : '"ownerId" = $1';

export async function selectIds(
  client: pg.Pool | pg.PoolClient,
  query: string,
  values: readonly unknown[],
): Promise<number[]> {
  const { rows } = await client.query<{ id: number }>(query, [...values]);
  return rows.map(({ id }) => id);
}

/** Adds rows. Those that exist get the values of the columns that a given row has. */
export async function upsert(client: pg.PoolClient, table: ModelName, rows: readonly Row[]): Promise<void> {
  // Column names come from the schemas in `kinds`, never from an upstream.
  const columns = new Set(rows.flatMap((row) => Object.keys(row)));
  const changes = [...columns].map((column) => `"${column}" = EXCLUDED."${column}"`);
  await insert(client, table, rows, `ON CONFLICT (id) DO UPDATE SET ${changes}`);
}

/** Adds rows. A column that a row does not have is null, whatever its default is, or stays as it is. */
export async function insert(
  client: pg.PoolClient,
  table: ModelName,
  rows: readonly Row[],
  onConflict = '',
): Promise<void> {
  if (rows.length === 0) return;
  // A newer release may have added others, and changed their order.
  const columns = columnsOf(table).map((column) => `"${column}"`);
  await client.query(
    `INSERT INTO "${table}" (${columns}) SELECT ${columns.map((column) => `merged.${column}`)} FROM jsonb_array_elements($1::jsonb) AS given
     LEFT JOIN "${table}" AS held ON held.id = (given->>'id')::int
     CROSS JOIN jsonb_populate_record(held, given) AS merged ${onConflict}`,
    [JSON.stringify(rows)],
  );
}

/** The key of the lock. No other advisory lock of the gateway has this number. */
const sharedLock = 0xd07e7a13;

/**
 * Takes the lock for data that the accounts of a mirror share: templates, which one account owns and others import, and usernames,
 * which are unique. The lock ends with the transaction.
 */
export async function acquireSharedLock(client: pg.PoolClient): Promise<void> {
  await client.query('SELECT pg_advisory_xact_lock($1)', [sharedLock]);
}
