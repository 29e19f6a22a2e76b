/**
 * The main file of this folder: Prisma's query language in, rows out, with one SQL statement for each query.
 *
 * Promises the results of Prisma's client: `statement.slow.test.ts` compares both by random queries. Unsupported queries are errors.
 * It is faster: the client takes more time for a query than all the rest of a request, and its engine needs 60 MB. May be replaced
 * by the client (docs/decisions/sql-writer.md).
 */

import pg from 'pg';
import { statementSpans } from '../../channels.ts';
import { retryOnConflict } from '../transaction.ts';
import { Batch, type NamedStatement } from './batch.ts';
import type { ModelName, Planning, SelectQuery, SlotValues, Where } from './query.ts';
import {
  countStatement,
  fillSlots,
  type RowStatement,
  type Statement,
  selectStatement,
} from './statement.ts';

export interface Sql {
  /**
   * The rows that the query describes, with the fields that it selects.
   * @param given the values of its slots. With them, the SQL of the query is cached by the identity of the query object, so a
   * caller has to pass the same object for each run.
   */
  findMany(model: ModelName, query: SelectQuery, given?: SlotValues): Promise<object[]>;
  count<M extends ModelName>(
    model: M,
    where: Where<M>,
    given?: SlotValues,
    planning?: Planning,
  ): Promise<number>;
  /** Runs a statement and returns its rows. */
  run<Row extends object>(text: string, values: readonly unknown[], planning?: Planning): Promise<Row[]>;
  /**
   * Runs a statement that writes and then `findMany`, in one transaction and one round trip: the query sees what was written.
   * Both are repeated after a deadlock or a serialization failure: see `retryOnConflict`.
   * @returns the rows of both.
   */
  write<Row extends object>(
    statement: Statement,
    ...query: Parameters<Sql['findMany']>
  ): Promise<readonly [written: Row[], found: object[]]>;
}

/** A statement that is sent with each read, and a check of its rows. If the check throws, the read fails. */
export interface ReadCheck {
  readonly statement: RowStatement;
  check(rows: object[]): void;
}

/**
 * @param nameOf gives the name under which a statement is prepared, or an empty one.
 * @param readCheck is sent with each read. An `Sql` with such a check is for reading only.
 */
export function createSql(
  pool: pg.Pool,
  nameOf: (text: string) => string = () => '',
  readCheck?: ReadCheck,
): Sql {
  const send = createSender(pool);
  // A statement without a name is planned each time.
  const named = <Written extends Statement>(
    statement: Written,
    { plansEachTime = false }: Planning = {},
  ) => ({
    ...statement,
    name: plansEachTime ? '' : nameOf(statement.text),
  });
  const write = (model: ModelName, query: SelectQuery) => named(selectStatement(model, query), query);
  /** The statement of each query that has slots. */
  const written = new WeakMap<SelectQuery, ReturnType<typeof write>>();

  function writeOnce(model: ModelName, query: SelectQuery) {
    const statement = written.get(query) ?? write(model, query);
    written.set(query, statement);
    return statement;
  }

  async function read(statement: NamedStatement): Promise<object[]> {
    if (!readCheck) return (await send([statement]))[0] ?? [];
    const [rows = [], checked = []] = await send([statement, named(readCheck.statement)]);
    readCheck.check(checked);
    return rows;
  }

  const found = (...[model, query, given]: Parameters<Sql['findMany']>) =>
    filled(given ? writeOnce(model, query) : write(model, query), given);

  // The caller knows the columns of its statement.
  const run = <Row extends object>(text: string, values: readonly unknown[], planning?: Planning) =>
    read(named({ text, values }, planning)) as Promise<Row[]>;

  return {
    run,
    async write<Row extends object>(statement: Statement, ...query: Parameters<Sql['findMany']>) {
      const both = [named(statement), found(...query)];
      const [written = [], rows = []] = await retryOnConflict(() => send(both));
      // As in `run`.
      return [written as Row[], rows] as const;
    },
    findMany: async (...query) => read(found(...query)),
    async count(model, where, given, planning) {
      const rows = await read(filled(named(countStatement(model, where), planning), given));
      // The statement has this column.
      const [row] = rows as { count: number }[];
      return row?.count ?? 0;
    },
  };
}

const filled = (statement: NamedStatement, given?: SlotValues): NamedStatement => ({
  ...statement,
  values: fillSlots(statement.values, given),
});

/**
 * Returns a function that sends a batch of statements. As soon as an error shows that connections share sessions, as behind a
 * pooler, it repeats the batch unprepared, and prepares no statement any more.
 */
function createSender(pool: pg.Pool) {
  let hasSessions = true;

  function attempt(statements: readonly NamedStatement[]): Promise<object[][]> {
    const batch = new Batch(statements);
    return statementSpans.hasSubscribers
      ? statementSpans.tracePromise(async () => resultsOf(pool, batch), { text: batch.text })
      : resultsOf(pool, batch);
  }

  const unprepared = (statements: readonly NamedStatement[]) =>
    attempt(statements.map((each) => ({ ...each, name: '' })));

  return (statements: readonly NamedStatement[]): Promise<object[][]> => {
    if (!hasSessions) return unprepared(statements);
    return attempt(statements).catch((error: unknown) => {
      if (!(error instanceof pg.DatabaseError) || !ofAnotherSession.has(error.code)) throw error;
      hasSessions = false;
      return unprepared(statements);
    });
  };
}

/**
 * PostgreSQL's error codes for a prepared statement that the session does not have, or has already
 * (`invalid_sql_statement_name`, `duplicate_prepared_statement`). The statement has not run.
 */
const ofAnotherSession = new Set<unknown>(['26000', '42P05']);

/** By its types the pool returns the query object. In fact it returns a promise of the value that the object passes to its callback. */
const resultsOf = (pool: pg.Pool, batch: Batch) => pool.query(batch) as unknown as Promise<object[][]>;
