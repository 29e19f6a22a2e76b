/** Writes rows of the data model, without the client of Prisma's: its engine takes longer to load than all there is to write. */

import type pg from 'pg';
import type { Prisma } from '../database/generated/prisma/client.ts';

type Models = Prisma.TypeMap['model'];

/** Those whose rows have an id. */
type Model = {
  [M in keyof Models]: Models[M]['payload']['scalars'] extends { id: number } ? M : never;
}[keyof Models];

/** What a row has to have and may have. */
type Row<M extends Model> = Exclude<
  Models[M]['operations']['createMany']['args']['data'],
  undefined | readonly unknown[]
>;

/**
 * Adds rows in one statement, each with the defaults of the columns that it does not have.
 * @returns their ids, in the same order.
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
  // As many as there are rows.
  return added.map(({ id }) => id) as { [Place in keyof Rows]: number };
}
