/**
 * Reads rows of the data model and runs single statements, without Prisma's client: so a process that only serves requests
 * never loads the engine of that client, which takes 60 MB.
 */

import pg from 'pg';
import { statementSpans } from '../../channels.ts';
import { retryOnConflict } from '../transaction.ts';
import { fillSlots } from './condition.ts';
import type { Condition, Model, PlannedQuery, Planning, SelectQuery as Query, SlotValues } from './query.ts';
import { type Responded, RowQueries, RowQuery } from './rowQuery.ts';
import { countStatement, type RowStatement, selectStatement } from './statement.ts';

export interface Sql {
  /**
   * The rows that the query describes, with the fields that it selects.
   * @param given the values of its slots. With them, the SQL of the query is cached by the identity of the query object, so a
   * caller has to pass the same object for each run.
   */
  findMany<M extends Model>(model: M, query: Query<M>, given?: SlotValues): Promise<object[]>;
  count<M extends Model>(
    model: M,
    where: Condition<M>,
    given?: SlotValues,
    planning?: Planning,
  ): Promise<number>;
  /** Runs a statement and returns its rows. */
  run<Row extends object>(text: string, values: readonly unknown[], planning?: Planning): Promise<Row[]>;
  /** The same for a statement that writes. It is repeated after a deadlock or a serialization failure: see `retryOnConflict`. */
  write<Row extends object>(text: string, values: readonly unknown[]): Promise<Row[]>;
  /**
   * Runs a statement that writes and then a query, in one transaction and one round trip: the query sees what was written,
   * and if it fails, nothing is written.
   */
  writeAndFind<M extends Model>(
    statement: RowStatement,
    model: M,
    query: Query<M>,
    given: SlotValues,
  ): Promise<{ readonly written: object[]; readonly found: object[] }>;
}

/**
 * Whether PostgreSQL has rejected a prepared statement before it ran, since the type of a column of its result has changed,
 * as after a migration ("cached plan must not change result type", `feature_not_supported`).
 */
const isOutdated = (error: unknown) => error instanceof pg.DatabaseError && error.code === '0A000';

/**
 * PostgreSQL's error codes for a prepared statement that the session does not have, or has already
 * (`invalid_sql_statement_name`, `duplicate_prepared_statement`). The statement has not run. They mean that a pooler shares
 * sessions between connections.
 */
const ofAnotherSession = new Set<unknown>(['26000', '42P05']);

const isElsewhere = (error: unknown) => error instanceof pg.DatabaseError && ofAnotherSession.has(error.code);

/** A statement that is sent with each read, and a check of its rows. If the check throws, the read fails. */
export interface ReadCheck {
  readonly statement: RowStatement;
  check(rows: object[]): void;
}

/** Runs a statement under a name of a prepared statement, or an empty name for none. */
type Ask<Result> = (name: string) => Promise<Result>;

/**
 * Runs statements as prepared ones, and repeats a statement unprepared if the connection has an outdated version of it. As
 * soon as an error shows that connections share sessions, as behind a new pooler, no statement is prepared any more.
 */
function createAsk() {
  let hasSessions = true;
  return <Result>(name: string, text: string, query: Ask<Result>): Promise<Result> => {
    const traced: Ask<Result> = statementSpans.hasSubscribers
      ? (as) => statementSpans.tracePromise(query, { text }, undefined, as)
      : query;
    if (name === '' || !hasSessions) return traced('');
    return traced(name).catch((error: unknown) => {
      if (isElsewhere(error)) hasSessions = false;
      // Every connection of the pool may have the outdated version, so the statement is repeated without a name.
      else if (!isOutdated(error)) throw error;
      return traced('');
    });
  };
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
  const ask = createAsk();
  const { find, follow } = createFind(pool, nameOf, readCheck);
  // A statement without a name is planned each time.
  const nameFor = (text: string, { plansEachTime = false }: Planning) => (plansEachTime ? '' : nameOf(text));
  const { write, writeOnce } = createStatementWriter(nameFor);

  async function run<Row extends object>(
    text: string,
    values: readonly unknown[],
    planning: Planning = {},
  ): Promise<Row[]> {
    const query = (name: string) => pool.query<Row>({ name, text, values: [...values] });
    const { rows } = await ask(nameFor(text, planning), text, query);
    await follow();
    return rows;
  }

  async function writeAndFind(statement: RowStatement, model: Model, query: Query, given: SlotValues) {
    const find = writeOnce(model, query);
    const values = fillSlots(find.values, given);
    const [written = [], found = []] = await retryOnConflict(() =>
      ask(nameOf(statement.text), `${statement.text}; ${find.text}`, (name) => {
        const write = new RowQuery({ ...statement, name }, statement.columns);
        const read = new RowQuery({ ...find, values, name: name === '' ? '' : find.name }, find.columns);
        return rowsOf(pool, new RowQueries([write, read]));
      }),
    );
    return { written, found };
  }

  return {
    run,
    write: (text, values) => retryOnConflict(() => run(text, values)),
    async findMany(model: Model, query: Query, given?: SlotValues) {
      const { name, text, values, columns } = given ? writeOnce(model, query) : write(model, query);
      const all = fillSlots(values, given);
      return ask(name, text, (as) => find(new RowQuery({ name: as, text, values: all }, columns)));
    },
    writeAndFind,
    async count(model, where, given, planning) {
      const { text, values } = countStatement(model, where);
      const [row] = await run<{ count: number }>(text, fillSlots(values, given), planning);
      return row?.count ?? 0;
    },
  };
}

/** Writes the statements of queries, and names them. */
function createStatementWriter(nameFor: (text: string, planning: Planning) => string) {
  /** The statement of each query that has slots. */
  const written = new WeakMap<PlannedQuery, RowStatement & { readonly name: string }>();

  function write(model: Model, query: PlannedQuery) {
    const statement = selectStatement(model, query);
    return { ...statement, name: nameFor(statement.text, query) };
  }

  function writeOnce(model: Model, query: PlannedQuery) {
    let statement = written.get(query);
    if (!statement) {
      statement = write(model, query);
      written.set(query, statement);
    }
    return statement;
  }

  return { write, writeOnce };
}

/** Reads rows, and runs the check with each read. */
function createFind(pool: pg.Pool, nameOf: (text: string) => string, readCheck: ReadCheck | undefined) {
  const queryOf = ({ statement }: ReadCheck) =>
    new RowQuery({ ...statement, name: nameOf(statement.text) }, statement.columns);
  return {
    async find(read: RowQuery): Promise<object[]> {
      if (!readCheck) return rowsOf(pool, read);
      const [rows = [], others = []] = await rowsOf(pool, new RowQueries([read, queryOf(readCheck)]));
      readCheck.check(others);
      return rows;
    },
    /** Runs the check after a statement whose columns are not known, and which `pg` itself reads. */
    async follow(): Promise<void> {
      if (readCheck) readCheck.check(await rowsOf(pool, queryOf(readCheck)));
    },
  };
}

/** The overload of `query` that takes a query object, which the types of `pg` leave out. */
interface CalledPool {
  query<Rows>(
    query: Responded<Rows>,
    values: undefined,
    callback: (error: unknown, rows: Rows) => void,
  ): void;
}

/** Passes a callback, since without one `pg` creates two promises for each statement. */
function rowsOf<Rows>(pool: pg.Pool, query: Responded<Rows>): Promise<Rows> {
  return new Promise((settle, fail) => {
    (pool as unknown as CalledPool).query(query, undefined, (error, rows) =>
      error ? fail(error) : settle(rows),
    );
  });
}
