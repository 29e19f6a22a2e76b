/** Reads and writes rows of any table, in the columns that each row has. */

import type pg from 'pg';
import type { Kind, MirrorRecord, Row } from './records.ts';

/** Columns of the mirror itself, and references, which `link` writes. They do not make a record differ. */
const uncompared = new Set([
  'detailsPending',
  'listedDigest',
  'trainerId',
  'goneTrainerId',
  'templateId',
  'goneTemplateId',
]);

/**
 * Returns the ids of those records that the table does not have, or has with another value in a column that the record has. A
 * record also differs when its children do.
 */
export async function findDiffering(
  client: pg.Pool | pg.PoolClient,
  { table, children }: Pick<Kind, 'children'> & { table: string },
  records: readonly Pick<MirrorRecord, 'row' | 'children'>[],
): Promise<Set<number>> {
  const ids = records.map(({ row }) => row.id);
  const rows = records.map(({ row }) =>
    Object.fromEntries(Object.entries(row).filter(([column]) => !uncompared.has(column))),
  );
  const differing = await selectDiffering(client, { table, parent: 'id' }, rows, ids);
  const parents = records.filter((record) => record.children !== undefined);
  if (!children || parents.length === 0) return differing;
  const parts = parents.flatMap((record) => record.children ?? []);
  const others = await selectDiffering(
    client,
    children,
    parts,
    parents.map(({ row }) => row.id),
  );
  return new Set([...differing, ...others]);
}

/** Selects the ids that a query gives. */
export async function selectIds(
  client: pg.Pool | pg.PoolClient,
  query: string,
  values: readonly unknown[],
): Promise<number[]> {
  const { rows } = await client.query<{ id: number }>(query, [...values]);
  return rows.map(({ id }) => id);
}

/** Selects those of the parents whose rows in the table differ from the given rows. A column that is left out does not differ. */
async function selectDiffering(
  client: pg.Pool | pg.PoolClient,
  { table, parent }: NonNullable<Kind['children']>,
  rows: readonly object[],
  parents: readonly number[],
): Promise<Set<number>> {
  const ids = await selectIds(
    client,
    `SELECT DISTINCT coalesce((given.value->>'${parent}')::int, held."${parent}") AS id
     FROM jsonb_array_elements($1::jsonb) AS given
     FULL JOIN (SELECT * FROM "${table}" WHERE "${parent}" = ANY($2)) AS held ON held.id = (given.value->>'id')::int
     WHERE held.id IS NULL OR given.value IS NULL
       OR jsonb_populate_record(held::"${table}", given.value) IS DISTINCT FROM held::"${table}"`,
    [JSON.stringify(rows), parents],
  );
  return new Set(ids);
}

/**
 * Adds rows, or changes existing ones.
 * @param nullUntilKnown columns that are null in new rows that do not have them.
 */
export async function upsert(
  client: pg.PoolClient,
  table: string,
  rows: readonly Row[],
  nullUntilKnown: readonly string[] = [],
): Promise<void> {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const columns = columnsOf([row]).join();
    (groups.get(columns) ?? groups.set(columns, []).get(columns))?.push(row);
  }
  for (const group of groups.values()) {
    const changes = columnsOf(group)
      .filter((column) => column !== 'id')
      .map((column) => `"${column}" = EXCLUDED."${column}"`);
    const onConflict = `ON CONFLICT (id) DO UPDATE SET ${changes}`;
    await insert(client, table, group, { onConflict, nullUntilKnown });
  }
}

/** Adds rows. A column that only some of them have is null in the others. */
export async function insert(
  client: pg.PoolClient,
  table: string,
  rows: readonly Row[],
  { onConflict = '', nullUntilKnown = [] }: { onConflict?: string; nullUntilKnown?: readonly string[] } = {},
): Promise<void> {
  if (rows.length === 0) return;
  const columns = columnList(columnsOf(rows, nullUntilKnown));
  await client.query(
    `INSERT INTO "${table}" (${columns}) SELECT ${columns} FROM json_populate_recordset(NULL::"${table}", $1) ${onConflict}`,
    [JSON.stringify(rows)],
  );
  // The sequence must not return ids that came from upstream.
  const sequence = `pg_get_serial_sequence('"${table}"', 'id')`;
  await client.query(`SELECT setval(${sequence}, greatest(max(id), 1)) FROM "${table}"`);
}

function columnsOf(rows: readonly Row[], always: readonly string[] = []): string[] {
  const columns = new Set(always);
  for (const row of rows) {
    for (const [column, value] of Object.entries(row)) if (value !== undefined) columns.add(column);
  }
  return [...columns];
}

/** Column names come from the schemas in `kinds`, never from an upstream. */
const columnList = (columns: readonly string[]) => columns.map((column) => `"${column}"`).join(', ');

/** The key of the lock. No other advisory lock of the gateway has this number. */
const sharedLock = 0xd07e7a13;

/**
 * Takes the lock for data that the accounts of a mirror share: templates, which one account owns and others import, and usernames,
 * which are unique. The lock ends with the transaction.
 */
export async function acquireSharedLock(client: pg.PoolClient): Promise<void> {
  await client.query('SELECT pg_advisory_xact_lock($1)', [sharedLock]);
}
