/**
 * What requests ask of PostgreSQL, past Prisma's client: rows of the data model, and single statements. A process
 * that only serves never loads the client's engine, which takes 60 MB.
 */

import pg from 'pg';
import { statementSpans } from '../../channels.ts';
import { onceMore } from '../transaction.ts';
import type { Condition, Model, RowQuery } from './query.ts';
import { countStatement, revive, selectStatement } from './statement.ts';

export interface Sql {
  /** The rows that the query describes, with what it selects and no more. */
  findMany<M extends Model>(model: M, query: RowQuery<M>): Promise<object[]>;
  count<M extends Model>(model: M, where: Condition<M>): Promise<number>;
  /** The rows that a statement gives. */
  run<Row extends object>(text: string, values: readonly unknown[]): Promise<Row[]>;
  /** The same for a statement that writes what others may be writing too: see `onceMore`. */
  write<Row extends object>(text: string, values: readonly unknown[]): Promise<Row[]>;
}

/**
 * Whether PostgreSQL has rejected a statement that it remembers, before it did anything: the type of a column that it
 * gives is another by now, as after a migration ("cached plan must not change result type", `feature_not_supported`).
 */
const isOutdated = (error: unknown) => error instanceof pg.DatabaseError && error.code === '0A000';

/** @param nameOf the name under which a connection is to remember a statement, where it may. */
export function createSql(pool: pg.Pool, nameOf: (text: string) => string = () => ''): Sql {
  async function ask<Row extends object>(name: string, text: string, values: readonly unknown[]) {
    const query = { name, text, values: [...values] };
    const { rows } = await statementSpans.tracePromise(() => pool.query<Row>(query), { text });
    return rows;
  }

  async function run<Row extends object>(text: string, values: readonly unknown[]): Promise<Row[]> {
    const name = nameOf(text);
    try {
      return await ask<Row>(name, text, values);
    } catch (error) {
      if (name === '' || !isOutdated(error)) throw error;
      // Each connection may remember it as it was: without a name it is parsed anew, on whichever this goes over.
      return await ask<Row>('', text, values);
    }
  }
  return {
    run,
    write: (text, values) => onceMore(() => run(text, values)),
    async findMany(model: Model, query: RowQuery) {
      const { text, values, shape } = selectStatement(model, query);
      const rows = await run(text, values);
      revive(rows, shape);
      return rows;
    },
    async count(model, where) {
      const { text, values } = countStatement(model, where);
      const [row] = await run<{ count: number }>(text, values);
      return row?.count ?? 0;
    },
  };
}
