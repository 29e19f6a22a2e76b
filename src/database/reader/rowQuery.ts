/**
 * A statement whose columns are known from the query that it was written for, as `pg` sends it: the server is not asked to
 * describe them, and rows are read by their places. What `pg` makes of every statement takes as long as the rest of a
 * small request.
 */

import type pg from 'pg';

/** A column of a row, and how its text is read. */
export interface Column {
  readonly name: string;
  read(text: string): unknown;
}

export interface NamedStatement {
  /** The name under which a connection is to remember it, empty for none. */
  readonly name: string;
  readonly text: string;
  readonly values: readonly unknown[];
}

/** What `pg` has of a connection, though its types do not say all of it. */
interface Connection {
  readonly stream: { cork(): void; uncork(): void };
  readonly parsedStatements: Readonly<Record<string, string | undefined>>;
  parse(statement: { readonly name: string; readonly text: string }): void;
  bind(values: { readonly statement: string; readonly values: readonly string[] }): void;
  execute(what: object): void;
  sync(): void;
}

/** A query that calls back with what the server has said. */
export interface Responded<Rows> extends pg.Submittable {
  /** Set by `pg`. */
  callback: ((error: unknown, rows?: Rows) => void) | undefined;
}

/** Called by `pg` by these names, in the order in which the server responds. */
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

  /** All but what ends the transaction. */
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

  // The statement has rows, and what the server says beside them is known.
  handleRowDescription(): void {}
  handleCommandComplete(): void {}
  handlePortalSuspended(): void {}
  handleEmptyQuery(): void {}
}

/**
 * Statements that are sent at once, and done one after the other in one transaction: each sees what those before it did, and
 * when one fails none is done.
 */
export class RowQueries implements Responded<object[][]> {
  callback: Responded<object[][]>['callback'];
  readonly #queries: readonly [RowQuery, ...RowQuery[]];
  /** How many are done. */
  #done = 0;

  constructor(queries: readonly [RowQuery, ...RowQuery[]]) {
    this.#queries = queries;
  }

  /** The one that the server is at. */
  get #current(): RowQuery {
    return this.#queries[this.#done] ?? this.#queries[0];
  }

  // `pg` notes by these what the connection remembers, when the server says that it has parsed it.
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
  // In one piece, since each message would be a packet of its own.
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

/** A parameter as PostgreSQL reads it. */
function textOf(value: unknown): string {
  return Array.isArray(value) ? `{${value.map(itemOf).join()}}` : String(value);
}

const itemOf = (item: unknown) =>
  typeof item === 'string' ? `"${item.replace(/[\\"]/g, '\\$&')}"` : String(item);
