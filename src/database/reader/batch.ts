/**
 * Sends statements in one batch through a connection of `pg`, and reads their rows. It uses the interface of `pg` for custom query
 * objects, such as those of `pg-cursor`.
 *
 * The query class of `pg` takes as much time as all the rest of a small request. This one reads the values of a row by index,
 * and does not ask the server to describe columns that are known in advance.
 */

import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import pg from 'pg';

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
  /** By default the server describes the columns, and `pg` reads them. */
  readonly columns?: readonly Column[] | undefined;
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
    dispose(_, name, reason) {
      if (reason === 'evict') connection.close({ type: 'S', name }, true);
    },
  });
  preparedStatements.set(connection, made);
  return made;
}

/**
 * Statements that run one after the other in one transaction: each sees the changes of those before it, and if one fails,
 * none takes effect. `pg` calls the methods in the order in which the server responds.
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
    if (this.#failure !== undefined) return;
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

  // These messages have no needed data.
  handlePortalSuspended(): void {}
  handleEmptyQuery(): void {}
}

/** Sends all messages of a statement but the Sync, which would end the transaction. */
function send(
  connection: pg.Connection,
  { name, text, columns }: NamedStatement,
  values: (string | null)[],
): void {
  if (name === '' || !preparedOn(connection).get(name)) {
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

function itemOf(item: unknown): string {
  if (typeof item === 'number') return String(item);
  const text = textOf(item);
  return text === null ? 'NULL' : `"${text.replace(/[\\"]/g, '\\$&')}"`;
}

/** A time as text in UTC. `pg` would write it in the time zone of this process and lose the seconds of historical offsets. */
export function timeText(time: Date): string {
  const year = time.getUTCFullYear();
  const written = String(year < 1 ? 1 - year : year).padStart(4, '0');
  // The part after the year always has the same length in ISO 8601.
  return `${written}${time.toISOString().slice(-'-01-01T00:00:00.000Z'.length)}${year < 1 ? ' BC' : ''}`;
}
