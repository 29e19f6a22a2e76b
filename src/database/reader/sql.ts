/**
 * What requests ask of PostgreSQL, past Prisma's client: rows of the data model, and single statements. A process
 * that only serves never loads the client's engine, which takes 60 MB.
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
   * The rows that the query describes, with what it selects and no more.
   * @param given the values of its slots. A query that is given any is remembered as it is written, by the object that it
   * is: whoever runs it again gives the same object, with other values.
   */
  findMany<M extends Model>(model: M, query: Query<M>, given?: SlotValues): Promise<object[]>;
  count<M extends Model>(
    model: M,
    where: Condition<M>,
    given?: SlotValues,
    planning?: Planning,
  ): Promise<number>;
  /** The rows that a statement gives. */
  run<Row extends object>(text: string, values: readonly unknown[], planning?: Planning): Promise<Row[]>;
  /** The same for a statement that writes what others may be writing too: see `onceMore`. */
  write<Row extends object>(text: string, values: readonly unknown[]): Promise<Row[]>;
  /**
   * Writes, and finds the rows that the query describes as they are then, in one transaction: where they cannot be had,
   * nothing is written. Both go to the server at once.
   */
  writeAndFind<M extends Model>(
    statement: RowStatement,
    model: M,
    query: Query<M>,
    given: SlotValues,
  ): Promise<{ readonly written: object[]; readonly found: object[] }>;
}

/**
 * Whether PostgreSQL has rejected a statement that it remembers, before it did anything: the type of a column that it
 * gives is another by now, as after a migration ("cached plan must not change result type", `feature_not_supported`).
 */
const isOutdated = (error: unknown) => error instanceof pg.DatabaseError && error.code === '0A000';

/**
 * PostgreSQL's codes for a statement that the session does not have, or has already (`invalid_sql_statement_name`,
 * `duplicate_prepared_statement`), before it did anything: the session is not that of the connection alone.
 */
const ofAnotherSession = new Set<unknown>(['26000', '42P05']);

const isElsewhere = (error: unknown) => error instanceof pg.DatabaseError && ofAnotherSession.has(error.code);

/** A statement that goes to the server behind each read, and what looks at what it gives: an error is one of the read. */
export interface ReadCheck {
  readonly statement: RowStatement;
  check(rows: object[]): void;
}

/** @param name the name of the statement, empty for none. */
type Ask<Result> = (name: string) => Promise<Result>;

/**
 * Asks by a name, and without it where a connection remembers the statement as it was. Where connections come to have no
 * sessions of their own, as when a pooler is put in between or replaced by another, nothing is asked by a name any more.
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
      // Each connection may remember it: without a name it is parsed anew, on whichever this goes over.
      else if (!isOutdated(error)) throw error;
      return traced('');
    });
  };
}

/**
 * @param nameOf the name under which a connection is to remember a statement, where it may.
 * @param companion of everything that is read; whatever has one is for reading alone.
 */
export function createSql(
  pool: pg.Pool,
  nameOf: (text: string) => string = () => '',
  companion?: ReadCheck,
): Sql {
  const ask = createAsk();
  const { find, follow } = createFind(pool, nameOf, companion);
  // A statement without a name is planned each time.
  const nameFor = (text: string, { plansEachTime = false }: Planning) => (plansEachTime ? '' : nameOf(text));
  /** Statements by the queries that they were written for. */
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

/** Reads rows, and has the companion go along. */
function createFind(pool: pg.Pool, nameOf: (text: string) => string, companion: ReadCheck | undefined) {
  const accompanying = ({ statement }: ReadCheck) =>
    new RowQuery({ ...statement, name: nameOf(statement.text) }, statement.columns);
  return {
    async find(read: RowQuery): Promise<object[]> {
      if (!companion) return rowsOf(pool, read);
      const [rows = [], others = []] = await rowsOf(pool, new RowQueries([read, accompanying(companion)]));
      companion.check(others);
      return rows;
    },
    /** What is not read by its columns is followed by the companion. */
    async follow(): Promise<void> {
      if (companion) companion.check(await rowsOf(pool, accompanying(companion)));
    },
  };
}

/** A pool as it is to whoever gives it a query of their own, which `pg` does not say in its types. */
interface CalledPool {
  query<Rows>(
    query: Responded<Rows>,
    values: undefined,
    callback: (error: unknown, rows: Rows) => void,
  ): void;
}

/** With a callback, since `pg` makes two promises of its own for each statement that is given none. */
function rowsOf<Rows>(pool: pg.Pool, query: Responded<Rows>): Promise<Rows> {
  return new Promise((settle, fail) => {
    (pool as unknown as CalledPool).query(query, undefined, (error, rows) =>
      error ? fail(error) : settle(rows),
    );
  });
}
