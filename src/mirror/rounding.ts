/**
 * What a list says less exactly than the record by its id: numbers that are rounded, and times without fractions of a
 * second. Of such a record the list says nothing new.
 */

import type pg from 'pg';
import type { Kind, MirrorRecord, Row } from './records.ts';

const decimalsOf = (value: number) => String(value).split('.')[1]?.length ?? 0;

/** Whether one of the two is the other with fewer decimals: a record may also be less exact than its list. */
function isRounded(one: number, other: number): boolean {
  const [fewer = 0, more = 0] = [decimalsOf(one), decimalsOf(other)].sort((a, b) => a - b);
  // A half is not exactly a half in binary.
  return fewer < more && Math.abs(one - other) <= 0.5 * 10 ** -fewer + 1e-9;
}

const isInstant = (value: unknown): value is string =>
  typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/.test(value);

/** Whether one of the two is the other without its fraction of a second. */
function isSameSecond(one: string, other: string): boolean {
  const [earlier = 0, later = 0] = [Date.parse(one), Date.parse(other)].sort((a, b) => a - b);
  return earlier % 1_000 === 0 && later - earlier < 1_000;
}

function isLessExact(given: unknown, held: unknown): boolean {
  if (typeof given === 'number' && typeof held === 'number') return isRounded(given, held);
  return isInstant(given) && isInstant(held) && isSameSecond(given, held);
}

const exactly = (given: Row, held: Row | undefined): Row =>
  held
    ? {
        ...given,
        ...Object.fromEntries(
          Object.entries(held).filter(([name, value]) => isLessExact(given[name], value)),
        ),
      }
    : given;

/** The records with what is here in the place of what they say of it less exactly. */
export async function keepExactValues(
  pool: pg.Pool,
  { table, children }: Kind,
  records: readonly MirrorRecord[],
): Promise<readonly MirrorRecord[]> {
  if (records.length === 0) return records;
  const rows = await read(pool, table, 'id', records);
  const parts = children
    ? await read(pool, children.table, children.parent, records)
    : new Map<number, Row>();
  return records.map((record) => ({
    ...record,
    row: exactly(record.row, rows.get(record.row.id)),
    ...(record.children && { children: record.children.map((child) => exactly(child, parts.get(child.id))) }),
  }));
}

/** The rows of a table whose column has the ids of these records. */
async function read(
  pool: pg.Pool,
  table: string,
  column: string,
  records: readonly MirrorRecord[],
): Promise<ReadonlyMap<number, Row>> {
  const { rows } = await pool.query<{ row: Row }>(
    `SELECT to_jsonb(held) AS row FROM "${table}" AS held WHERE "${column}" = ANY($1)`,
    [records.map(({ row }) => row.id)],
  );
  return new Map(rows.map(({ row }) => [row.id, row]));
}
