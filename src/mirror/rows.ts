/** Reads and writes rows of any table, in the columns that each row has. */

import type pg from 'pg';
import type { Kind, MirrorRecord, Row } from './records.ts';

/** Columns that the mirror has for itself, and references, which `link` writes: they do not make a record differ. */
const uncompared = new Set([
  'detailsPending',
  'listedDigest',
  'trainerId',
  'goneTrainerId',
  'templateId',
  'goneTemplateId',
]);

type Compared = Pick<MirrorRecord, 'row' | 'children'>;

/**
 * Returns the ids of those records that the table does not have, or has with another value in a column that the record has. A
 * record also differs when its children do.
 */
export async function findDiffering(
  client: pg.Pool | pg.PoolClient,
  { table, children }: Pick<Kind, 'children'> & { table: string },
  records: readonly Compared[],
): Promise<Set<number>> {
  const rows = records.map(({ row }) => row);
  const differing = await findDifferingRows(client, table, rows);
  const parents = records.filter((record) => record.children !== undefined);
  if (children && parents.length > 0)
    for (const id of await findDifferingParents(client, children, parents)) differing.add(id);
  return differing;
}

async function findDifferingRows(
  client: pg.Pool | pg.PoolClient,
  table: string,
  rows: readonly Row[],
): Promise<Set<number>> {
  const differing = new Set<number>();
  for (const [columns, group] of groupByColumns(rows)) {
    const compared = columns.filter((column) => !uncompared.has(column));
    const { rows: found } = await client.query<{ id: number }>(
      `SELECT given.id FROM json_populate_recordset(NULL::"${table}", $1) AS given
       LEFT JOIN "${table}" AS held ON held.id = given.id
       WHERE ROW(${columnList(compared, 'given')}) IS DISTINCT FROM ROW(${columnList(compared, 'held')})`,
      [JSON.stringify(group)],
    );
    for (const { id } of found) differing.add(id);
  }
  return differing;
}

/** Returns the ids of the records whose children differ from those in the table. */
async function findDifferingParents(
  client: pg.Pool | pg.PoolClient,
  { table, parent }: NonNullable<Kind['children']>,
  parents: readonly Compared[],
): Promise<number[]> {
  const rows = parents.flatMap((record) => record.children ?? []);
  const columns = columnList(columnsOf(rows, ['id', parent]));
  const { rows: found } = await client.query<{ id: number }>(
    `WITH given AS (SELECT ${columns} FROM json_populate_recordset(NULL::"${table}", $1)),
          held AS (SELECT ${columns} FROM "${table}" WHERE "${parent}" = ANY($2))
     SELECT DISTINCT "${parent}" AS id
     FROM ((TABLE given EXCEPT TABLE held) UNION ALL (TABLE held EXCEPT TABLE given)) AS changed`,
    [JSON.stringify(rows), parents.map(({ row }) => row.id)],
  );
  return found.map(({ id }) => id);
}

/**
 * Adds rows, or changes those that are there.
 * @param nullUntilKnown columns that are null in new rows that do not have them.
 */
export async function upsert(
  client: pg.PoolClient,
  table: string,
  rows: readonly Row[],
  nullUntilKnown: readonly string[] = [],
): Promise<void> {
  for (const [columns, group] of groupByColumns(rows)) {
    const changes = columns
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
  await skipIds(client, table);
}

/** Moves the sequence of the ids past those that came from upstream, so that the database does not give them out again. */
async function skipIds(client: pg.PoolClient, table: string): Promise<void> {
  await client.query(
    `SELECT setval(pg_get_serial_sequence('"${table}"', 'id'), greatest(max(id), 1)) FROM "${table}"`,
  );
}

/** Groups rows by the columns that they have. */
function groupByColumns(rows: readonly Row[]): Iterable<[string[], Row[]]> {
  const groups = new Map<string, [string[], Row[]]>();
  for (const row of rows) {
    const columns = columnsOf([row]);
    const key = columns.join();
    const group = groups.get(key);
    if (group) group[1].push(row);
    else groups.set(key, [columns, [row]]);
  }
  return groups.values();
}

function columnsOf(rows: readonly Row[], always: readonly string[] = []): string[] {
  const columns = new Set(always);
  for (const row of rows) {
    for (const [column, value] of Object.entries(row)) if (value !== undefined) columns.add(column);
  }
  return [...columns];
}

/** Column names come from the schemas in `kinds`, never from an upstream. */
function columnList(columns: readonly string[], table?: string): string {
  return columns.map((column) => `${table ? `${table}.` : ''}"${column}"`).join(', ');
}
