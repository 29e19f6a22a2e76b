/** Compares values of which one may be less exact than the other: a number with fewer decimals, a time without its fraction. */

import type pg from 'pg';
import type { Kind, MirrorRecord, Row } from './records.ts';

const decimalsOf = (value: number) => String(value).split('.')[1]?.length ?? 0;

/**
 * Whether one of the two may be the other with fewer decimals: a record may also be less exact than its list.
 * @param tolerance the greatest difference, in units of the last decimal of the less exact: 0.5 if it is rounded, 1 if the
 * decimals are cut off.
 */
function hasFewerDecimals(one: number, other: number, tolerance: number): boolean {
  const [fewer = 0, more = 0] = [decimalsOf(one), decimalsOf(other)].sort((a, b) => a - b);
  // A half is not exactly a half in binary.
  return fewer < more && Math.abs(one - other) <= tolerance * 10 ** -fewer + 1e-9;
}

/** Whether a value is a time, as `instant` in fields.ts or PostgreSQL's JSON writes it, and not a text that begins like one. */
export const isInstant = (value: unknown): value is string =>
  typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d(:\d\d)*)$/.test(value);

/** Whether one of the two is the other without its fraction of a second. */
function isSameSecond(one: string, other: string): boolean {
  const [earlier = 0, later = 0] = [Date.parse(one), Date.parse(other)].sort((a, b) => a - b);
  return earlier % 1_000 === 0 && later - earlier < 1_000;
}

function isInexact(given: unknown, held: unknown, tolerance: number): boolean {
  if (typeof given === 'number' && typeof held === 'number') return hasFewerDecimals(given, held, tolerance);
  return isInstant(given) && isInstant(held) && isSameSecond(given, held);
}

const withExactValues = (given: Row, held: Row | undefined, tolerance: number): Row =>
  held
    ? {
        ...given,
        ...Object.fromEntries(
          Object.entries(held).filter(([name, value]) => isInexact(given[name], value, tolerance)),
        ),
      }
    : given;

/**
 * The records with the values of the mirror in place of values that differ by their exactness alone.
 * @param toleranceOf the tolerance for a record, as in `hasFewerDecimals`.
 */
export async function keepExactValues(
  pool: pg.Pool,
  { table, children }: Kind,
  records: readonly MirrorRecord[],
  toleranceOf: (row: Row) => number,
): Promise<readonly MirrorRecord[]> {
  if (records.length === 0) return records;
  const rows = await read(pool, table, 'id', records);
  const parts = children
    ? await read(pool, children.table, children.parent, records)
    : new Map<number, Row>();
  return records.map((record) => {
    const { row, children: given } = record;
    const tolerance = toleranceOf(row);
    return {
      ...record,
      row: withExactValues(row, rows.get(row.id), tolerance),
      ...(given && {
        children: given.map((child) => withExactValues(child, parts.get(child.id), tolerance)),
      }),
    };
  });
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
