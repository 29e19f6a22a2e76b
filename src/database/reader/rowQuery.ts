/**
 * A faster query for `pg`, for statements whose columns are known in advance: it does not ask the server to describe the
 * columns, and reads the values of a row by position. The query class of `pg` takes as much time as all the rest of a small
 * request.
 */

import type pg from 'pg';

/** A column of a row, and how its text is read. */
export interface Column {
  readonly name: string;
  read(text: string): unknown;
}

export interface NamedStatement {
  /** The name of the prepared statement; empty if it is not prepared. */
  readonly name: string;
  readonly text: string;
  readonly values: readonly unknown[];
}

/** The members of a connection of `pg` that its types leave out. */
interface Connection {
  readonly stream: { cork(): void; uncork(): void };
  readonly parsedStatements: Readonly<Record<string, string | undefined>>;
  parse(statement: { readonly name: string; readonly text: string }): void;
  bind(values: { readonly statement: string; readonly values: readonly string[] }): void;
  execute(what: object): void;
  sync(): void;
}

/** A query that passes its result to a callback. */
export interface Responded<Rows> extends pg.Submittable {
  /** Set by `pg`. */
  callback: ((error: unknown, rows?: Rows) => void) | undefined;
}

/** One statement. `pg` calls its methods in the order in which the server responds. */
export class RowQuery implements Responded<object[]> {
  callback: Responded<object[]>['callback'];
  readonly name: string;
  readonly text: string;
  readonly values: readonly unknown[];
  readonly #columns: readonly Column[];
  readonly #rows: object[] = [];
  #failure: unknown;

  constructor({ name, text, values }: NamedStatement, columns: readonly Column[]) {
    this.name = name;
    this.text = text;
    this.values = values;
    this.#columns = columns;
  }

  submit(connection: pg.Connection): void {
    sendAll(connection, [this]);
  }

  /** Sends all messages of the statement but the Sync, which would end the transaction. */
  send(connection: Connection): void {
    const { name, text } = this;
    if (name === '' || connection.parsedStatements[name] === undefined) connection.parse({ name, text });
    connection.bind({ statement: name, values: this.values.map(textOf) });
    connection.execute({});
  }

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    if (this.#failure !== undefined) return;
    try {
      this.#rows.push(this.#rowOf(fields));
    } catch (error) {
      this.#failure = error;
    }
  }

  #rowOf(fields: readonly (string | null)[]): object {
    const row: Record<string, unknown> = {};
    const columns = this.#columns;
    for (let place = 0; place < columns.length; place++) {
      const column = columns[place];
      const text = fields[place];
      if (column) row[column.name] = text == null ? null : column.read(text);
    }
    return row;
  }

  /** @throws an error for a row that could not be read. */
  rows(): object[] {
    if (this.#failure !== undefined) throw this.#failure;
    return this.#rows;
  }

  handleReadyForQuery(): void {
    callWith(() => this.rows(), this.callback);
  }

  handleError(error: unknown): void {
    this.callback?.(error);
  }

  // These messages bring nothing that is needed beside the rows.
  handleRowDescription(): void {}
  handleCommandComplete(): void {}
  handlePortalSuspended(): void {}
  handleEmptyQuery(): void {}
}

/**
 * Statements that are sent in one batch and run one after the other in one transaction: each sees the changes of those
 * before it, and if one fails, none takes effect.
 */
export class RowQueries implements Responded<object[][]> {
  callback: Responded<object[][]>['callback'];
  readonly #queries: readonly [RowQuery, ...RowQuery[]];
  /** How many statements have completed. */
  #done = 0;

  constructor(queries: readonly [RowQuery, ...RowQuery[]]) {
    this.#queries = queries;
  }

  /** The statement that the server runs now. */
  get #current(): RowQuery {
    return this.#queries[this.#done] ?? this.#queries[0];
  }

  // When the server has parsed a statement, `pg` reads these to note that the connection has it prepared.
  get name(): string {
    return this.#current.name;
  }
  get text(): string {
    return this.#current.text;
  }
  get values(): readonly unknown[] {
    return this.#current.values;
  }

  submit(connection: pg.Connection): void {
    sendAll(connection, this.#queries);
  }

  handleDataRow(row: { readonly fields: readonly (string | null)[] }): void {
    this.#current.handleDataRow(row);
  }

  handleCommandComplete(): void {
    this.#done++;
  }

  handleReadyForQuery(): void {
    callWith(() => this.#queries.map((query) => query.rows()), this.callback);
  }

  handleError(error: unknown): void {
    this.callback?.(error);
  }

  handleRowDescription(): void {}
  handlePortalSuspended(): void {}
  handleEmptyQuery(): void {}
}

function sendAll(given: pg.Connection, queries: readonly RowQuery[]): void {
  const connection = given as unknown as Connection;
  // Corked, since otherwise each message would be a packet of its own.
  connection.stream.cork();
  try {
    for (const query of queries) query.send(connection);
    connection.sync();
  } finally {
    connection.stream.uncork();
  }
}

function callWith<Rows>(read: () => Rows, callback: Responded<Rows>['callback']): void {
  let rows: Rows;
  try {
    rows = read();
  } catch (error) {
    callback?.(error);
    return;
  }
  callback?.(null, rows);
}

/** A parameter in the text format of PostgreSQL. */
function textOf(value: unknown): string {
  return Array.isArray(value) ? `{${value.map(itemOf).join()}}` : String(value);
}

const itemOf = (item: unknown) =>
  typeof item === 'string' ? `"${item.replace(/[\\"]/g, '\\$&')}"` : String(item);
