/**
 * The main file of this folder: Prisma's query language in, rows out, with one SQL statement for each query.
 *
 * Promises the results of Prisma's client: `statement.test.ts` compares both by random queries. Unsupported queries are errors.
 * It is faster: the client takes more time for a query than all the rest of a request, and its engine needs 60 MB. May be replaced
 * by the client (docs/decisions/sql-writer.md).
 */

import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import pg from 'pg';
import { statementSpans } from '../../channels.ts';
import type { ModelName, SlotValues } from '../models.ts';
import { retryOnConflict } from '../transaction.ts';
import {
  type Column,
  countStatement,
  fillSlots,
  type SelectQuery,
  type Statement,
  selectStatement,
  timeText,
} from './statement.ts';

export interface Sql {
  /**
   * The rows that the query describes, with the fields that it selects.
   * @param given the values of its slots. With them, the SQL of the query is cached by the identity of the query object, so a
   * caller has to pass the same object for each run.
   */
  findMany(model: ModelName, query: SelectQuery, given?: SlotValues): Promise<object[]>;
  /** @param plansEachTime as in `SelectQuery`. */
  count(model: ModelName, where: object, given?: SlotValues, plansEachTime?: boolean): Promise<number>;
  /** Runs a statement and returns its rows. */
  run<Row extends object>(text: string, values: readonly unknown[], plansEachTime?: boolean): Promise<Row[]>;
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
  readonly statement: Statement;
  check(rows: object[]): void;
}

/**
 * @param nameOf gives the name under which a statement is prepared, or an empty one.
 * @param readCheck is sent with each read. If its check may throw after a write, the `Sql` is for reading only.
 */
export function createSql(
  pool: pg.Pool,
  nameOf: (text: string) => string = () => '',
  readCheck?: ReadCheck,
): Sql {
  const send = createSender(pool);
  // A statement without a name is planned each time.
  const named = (statement: Statement, plansEachTime = false): NamedStatement => ({
    ...statement,
    name: plansEachTime ? '' : nameOf(statement.text),
  });
  const written = new WeakMap<SelectQuery, NamedStatement>();

  function found(...[model, query, given]: Parameters<Sql['findMany']>): NamedStatement {
    const known = given && written.get(query);
    const statement = known ?? named(selectStatement(model, query), query.plansEachTime);
    if (given) written.set(query, statement);
    return filled(statement, given);
  }

  async function read(statement: NamedStatement): Promise<object[]> {
    if (!readCheck) return (await send([statement]))[0] ?? [];
    const [rows = [], checked = []] = await send([statement, named(readCheck.statement)]);
    readCheck.check(checked);
    return rows;
  }

  return {
    // The caller knows the columns of its statement.
    run: <Row extends object>(text: string, values: readonly unknown[], plansEachTime?: boolean) =>
      read(named({ text, values }, plansEachTime)) as Promise<Row[]>,
    async write<Row extends object>(statement: Statement, ...query: Parameters<Sql['findMany']>) {
      const both = [named(statement), found(...query)];
      const [written = [], rows = []] = await retryOnConflict(() => send(both));
      // As in `run`.
      return [written as Row[], rows] as const;
    },
    findMany: (...query) => read(found(...query)),
    async count(model, where, given, plansEachTime) {
      const rows = await read(filled(named(countStatement(model, where), plansEachTime), given));
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
    // By its types the pool returns the query object. In fact it returns a promise of the value for the object's callback.
    const send = () => pool.query(batch) as unknown as Promise<object[][]>;
    return statementSpans.hasSubscribers ? statementSpans.tracePromise(send, { text: batch.text }) : send();
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

export interface NamedStatement extends Statement {
  /** The name of the prepared statement; empty if it is not prepared. */
  readonly name: string;
}

/** How many statements a connection prepares at most: many more than the operations of a frontend need. */
export const maxStatements = 250;

/** In characters: several times the longest statement without a filter. Statements with filters can be very large. */
const longestPrepared = 8_000;

/**
 * The name of a prepared statement, which PostgreSQL parses and plans only once; empty for a text that is too long. It is a digest
 * of the text: if clients share a session behind a pooler, the name means the same for all.
 */
export const statementName = (text: string): string =>
  text.length > longestPrepared
    ? ''
    : `dovetail_${createHash('sha256').update(text).digest('base64url').slice(0, 22)}`;

/** The names of the statements that each connection has prepared. The pool closes a connection on which one has failed. */
const preparedStatements = new WeakMap<pg.Connection, LRUCache<string, true>>();

function preparedOn(connection: pg.Connection) {
  const known = preparedStatements.get(connection);
  if (known) return known;
  const made = new LRUCache<string, true>({
    max: maxStatements,
    dispose: (_, name) => connection.close({ type: 'S', name }, true),
  });
  preparedStatements.set(connection, made);
  return made;
}

/**
 * Statements that run one after the other in one transaction: each sees the changes of those before it, and if one fails,
 * none takes effect. This is a custom query object of `pg`, such as those of `pg-cursor`: `pg` calls the methods in the order in
 * which the server responds.
 *
 * The query class of `pg` takes as much time as all the rest of a small request. This one reads the values of a row by index,
 * and does not ask the server to describe columns that are known in advance.
 */
export class Batch implements pg.Submittable {
  /** Set by `pg`. */
  callback: ((error: unknown, results?: object[][]) => void) | undefined;
  readonly statements: readonly NamedStatement[];
  /** The values of each statement as text. A value without a text throws before anything is sent. */
  readonly #values: readonly (string | null)[][];
  readonly #results: object[][];
  /** How many statements have completed. */
  #done = 0;
  /** The columns of the statement that the server runs now. */
  #columns: readonly Column[];
  #failure: unknown;

  constructor(statements: readonly NamedStatement[]) {
    this.statements = statements;
    this.#values = statements.map(({ values }) => values.map(textOf));
    this.#results = statements.map(() => []);
    this.#columns = statements[0]?.columns ?? [];
  }

  /** The texts of the statements, for a log. */
  get text(): string {
    return this.statements.map(({ text }) => text).join('; ');
  }

  submit(connection: pg.Connection): void {
    // Corked, since otherwise each message would be a packet of its own.
    connection.stream.cork();
    try {
      for (const [index, statement] of this.statements.entries())
        send(connection, statement, this.#values[index] ?? []);
      connection.sync();
    } finally {
      connection.stream.uncork();
    }
  }

  handleRowDescription({ fields }: { readonly fields: readonly pg.FieldDef[] }): void {
    this.#columns = fields.map(({ name, dataTypeID }) => ({
      name,
      read: pg.types.getTypeParser(dataTypeID, 'text'),
    }));
  }

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    try {
      this.#results[this.#done]?.push(rowOf(this.#columns, fields));
    } catch (error) {
      this.#failure = error;
    }
  }

  handleCommandComplete(): void {
    this.#done++;
    this.#columns = this.statements[this.#done]?.columns ?? [];
  }

  handleReadyForQuery(): void {
    if (this.#failure === undefined) this.callback?.(null, this.#results);
    else this.callback?.(this.#failure);
  }

  handleError(error: unknown): void {
    this.callback?.(error);
  }
}

/** Sends all messages of a statement but the Sync, which would end the transaction. */
function send(
  connection: pg.Connection,
  { name, text, columns }: NamedStatement,
  values: (string | null)[],
): void {
  if (!preparedOn(connection).get(name)) {
    if (name !== '') {
      // A session that a pooler has handed on may have it from before.
      connection.close({ type: 'S', name }, true);
      preparedOn(connection).set(name, true);
    }
    connection.parse({ name, text, types: [] }, true);
  }
  connection.bind({ statement: name, values }, true);
  if (!columns) connection.describe({ type: 'P', name: '' }, true);
  connection.execute({}, true);
}

function rowOf(columns: readonly Column[], fields: readonly (string | null)[]): object {
  const row: Record<string, unknown> = {};
  for (let index = 0; index < columns.length; index++) {
    const column = columns[index];
    const text = fields[index];
    if (column) row[column.name] = text == null ? null : column.read(text);
  }
  return row;
}

/** A parameter in the text format of PostgreSQL. */
function textOf(value: unknown): string | null {
  if (value == null) return null;
  if (value instanceof Date) return timeText(value);
  if (Array.isArray(value)) return `{${value.map(itemOf).join()}}`;
  return Buffer.isBuffer(value) ? `\\x${value.toString('hex')}` : String(value);
}

/** An item of a list. None is null. */
const itemOf = (item: unknown): string => `"${String(textOf(item)).replace(/[\\"]/g, '\\$&')}"`;
