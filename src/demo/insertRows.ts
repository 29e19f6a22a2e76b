/** Inserts rows of the data model without Prisma's client, whose engine takes longer to load than the rows take to write. */

import type pg from 'pg';
import type { Prisma } from '../database/generated/prisma/client.ts';

type Models = Prisma.TypeMap['model'];

/** The models whose rows have an id. */
type Model = {
  [M in keyof Models]: Models[M]['payload']['scalars'] extends { id: number } ? M : never;
}[keyof Models];

/** The columns of a row, required and optional. */
type Row<M extends Model> = Exclude<
  Models[M]['operations']['createMany']['args']['data'],
  undefined | readonly unknown[]
>;

/**
 * Inserts rows with one statement. A column that a row leaves out gets its default.
 * @returns the ids of the rows, in the same order.
 */
export async function insertRows<M extends Model, const Rows extends readonly Row<M>[]>(
  client: pg.PoolClient,
  model: M,
  rows: Rows,
): Promise<{ [Place in keyof Rows]: number }> {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const values: unknown[] = [];
  const tuples = rows.map((row) => {
    const given = new Map<string, unknown>(Object.entries(row));
    return `(${columns.map((column) => (given.has(column) ? `$${values.push(given.get(column))}` : 'DEFAULT'))})`;
  });
  const { rows: added } = await client.query<{ id: number }>(
    `INSERT INTO "${model}" (${columns.map((column) => `"${column}"`)}) VALUES ${tuples} RETURNING id`,
    values,
  );
  // There is one id for each row.
  return added.map(({ id }) => id) as { [Place in keyof Rows]: number };
}
