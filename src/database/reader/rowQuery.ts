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

/** Called by `pg` by these names, in the order in which the server responds. */
export class RowQuery implements pg.Submittable {
  /** Set by `pg`. */
  callback: ((error: unknown, rows?: object[]) => void) | undefined;
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

  submit(given: pg.Connection): void {
    const connection = given as unknown as Connection;
    const { name, text } = this;
    // In one piece, since each message would be a packet of its own.
    connection.stream.cork();
    try {
      if (name === '' || connection.parsedStatements[name] === undefined) connection.parse({ name, text });
      connection.bind({ statement: name, values: this.values.map(textOf) });
      connection.execute({});
      connection.sync();
    } finally {
      connection.stream.uncork();
    }
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

  handleReadyForQuery(): void {
    if (this.#failure === undefined) this.callback?.(null, this.#rows);
    else this.callback?.(this.#failure);
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

/** A parameter as PostgreSQL reads it. */
function textOf(value: unknown): string {
  return Array.isArray(value) ? `{${value.map(itemOf).join()}}` : String(value);
}

const itemOf = (item: unknown) =>
  typeof item === 'string' ? `"${item.replace(/[\\"]/g, '\\$&')}"` : String(item);
