/**
 * Translates each query to one SQL statement, which reads rows and, as JSON, the rows of their relations.
 *
 * A query means the same as in Prisma's client, which the tests compare this module with. A part of Prisma's language that
 * this module does not support is an error. Prisma's client takes more time to translate queries and to build objects from
 * rows than all the rest of a request takes in this process.
 */

import type { Column } from './batch.ts';
import { columnOf, fieldOf, listOf } from './dataModel.ts';
import { type ModelName, type SelectQuery, Slot } from './query.ts';
import {
  conditionOn,
  createWriter,
  isRecord,
  joinOn,
  listedConditions,
  onlyEntry,
  orderedBy,
  type Writer,
} from './where.ts';

export interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

export interface RowStatement extends Statement {
  /** How to read each column of the result, so that its value has the type of the data model. */
  readonly columns: readonly Column[];
}

/** Which fields of JSON rows are times, and which are numbers, since JSON cannot represent all of them. */
interface Shape {
  readonly times: readonly string[];
  readonly floats: readonly string[];
  readonly nested: readonly { readonly name: string; readonly shape: Shape }[];
}

/** @throws an error for a query that this module does not support. */
export function selectStatement(model: ModelName, query: SelectQuery): RowStatement {
  const values: unknown[] = [];
  const { text, columns } = select(createWriter(values), model, query);
  return { text, values, columns };
}

/** Counts rows, in a column called `count`. */
export function countStatement(model: ModelName, where: object): RowStatement {
  const values: unknown[] = [];
  const columns = [{ name: 'count', read: Number }];
  return { text: count(createWriter(values), model, where), values, columns };
}

/** Converts the values of JSON rows to the types of the data model, in place. */
function revive(rows: readonly object[], { times, floats, nested }: Shape): void {
  if (times.length === 0 && floats.length === 0 && nested.length === 0) return;
  for (const row of rows as readonly Record<string, unknown>[]) {
    for (const name of times) if (row[name] !== null) row[name] = timeOf(Number(row[name]));
    // In JSON, numbers that are not finite are text.
    for (const name of floats) if (typeof row[name] === 'string') row[name] = Number(row[name]);
    // The statement returns an array for each relation.
    for (const { name, shape } of nested) revive(row[name] as object[], shape);
  }
}

/**
 * A time that no `Date` can represent stays a number: an infinite one, as in `pg`, and one after the year 275760. The years of
 * PostgreSQL end with 294276.
 */
const timeOf = (milliseconds: number) =>
  Math.abs(milliseconds) <= furthestDate ? new Date(milliseconds) : milliseconds;

/** In milliseconds from the epoch, in either direction. */
const furthestDate = 8.64e15;

/** A SELECT and how to read its result: as the columns of a statement, or as JSON rows within another one. */
interface Selected {
  readonly text: string;
  readonly columns: readonly Column[];
  readonly shape: Shape;
}

const queryParts = new Set(['select', 'where', 'anyOf', 'orderBy', 'take', 'skip', 'plansEachTime']);

/** @param tied the condition that joins the rows to those of an outer table. */
function select(
  writer: Writer,
  model: ModelName,
  query: SelectQuery,
  table = writer.nextTable(),
  tied = 'true',
): Selected {
  for (const part of Object.keys(query))
    if (!queryParts.has(part)) throw new Error(`${part} is not a part of a query of this module`);
  const { parts, columns, shape } = selectedColumns(writer, model, query.select, table);
  const { where = {}, anyOf, orderBy = [], take, skip } = query;
  const order = orderedBy(model, orderBy, table);
  const limit = take === undefined ? undefined : writer.parameter(rowCount('take', take));
  const offset = skip ? writer.parameter(rowCount('skip', skip)) : undefined;
  const limitText = limit ? ` LIMIT ${limit}` : '';
  let source = `FROM "${model}" ${table} WHERE ${tied} AND ${conditionOn(writer, model, where, table)}`;
  if (anyOf) {
    const needed = limit && offset ? ` LIMIT ${limit}::bigint + ${offset}::bigint` : limitText;
    const conditions = listedConditions(writer, model, 'anyOf', anyOf, table);
    source = `FROM (${unionOf(conditions, `SELECT ${table}.* ${source}`, order + needed)}) ${table}`;
  }
  const page = offset
    ? // In a subquery, since otherwise PostgreSQL computes the selected fields for the skipped rows as well.
      `FROM (SELECT ${table}.* ${source}${order}${limitText} OFFSET ${offset}) ${table}${order}`
    : source + order + limitText;
  return { text: `SELECT ${parts.join(', ')} ${page}`, columns, shape };
}

/**
 * The rows that meet any of the conditions, each row once.
 * @param rows selects rows, and ends with a condition of its own.
 * @param end the order of the rows and their number.
 */
function unionOf(conditions: readonly string[], rows: string, end: string): string {
  return conditions
    .map((condition, index) => {
      // The conditions before this one have found the rows that meet them.
      const others = conditions.slice(0, index).map((other) => ` AND ${other} IS NOT TRUE`);
      return `(${rows} AND ${condition}${others.join('')}${end})`;
    })
    .join(' UNION ALL ');
}

function selectedColumns(writer: Writer, model: ModelName, selection: object, table: string) {
  const parts: string[] = [];
  const columns: Column[] = [];
  const times: string[] = [];
  const floats: string[] = [];
  const nested: { name: string; shape: Shape }[] = [];
  const entries: [string, unknown][] = Object.entries(selection);
  for (const [name, wanted] of entries) {
    if (name === '_count') {
      parts.push(`${counts(writer, model, selectionOf(name, wanted), table)} AS "_count"`);
      columns.push({ name, read: JSON.parse });
    } else if (wanted === true) {
      const column = columnOf(model, name, table);
      const { type } = fieldOf(model, name);
      if (type === 'DateTime') times.push(name);
      if (type === 'Float') floats.push(name);
      parts.push(type === 'DateTime' ? `${milliseconds(column)} AS "${name}"` : column);
      columns.push({ name, read: readers.get(type) ?? asText });
    } else {
      const relation = listOf(model, name);
      const inner = writer.nextTable();
      const below = select(
        writer,
        relation.model,
        queryOf(name, wanted),
        inner,
        joinOn(relation, inner, table),
      );
      parts.push(`(SELECT coalesce(json_agg(rows), '[]') FROM (${below.text}) rows) AS "${name}"`);
      columns.push({ name, read: (text) => revived(JSON.parse(text), below.shape) });
      nested.push({ name, shape: below.shape });
    }
  }
  if (parts.length === 0) throw new Error(`nothing is selected of ${model}`);
  return { parts, columns, shape: { times, floats, nested } };
}

/** How to read the text of a column, by its type. Text and enumeration values stay as they are. */
const asText = (text: string) => text;
const readers = new Map<string, Column['read']>([
  ['Int', Number],
  ['Float', Number],
  ['Boolean', (text) => text === 't'],
  ['DateTime', (text) => timeOf(Number(text))],
]);

function revived(rows: object[], shape: Shape): object[] {
  revive(rows, shape);
  return rows;
}

/** @param tied as for `select`. */
function count(
  writer: Writer,
  model: ModelName,
  where: object,
  table = writer.nextTable(),
  tied = 'true',
): string {
  return `SELECT count(*)::int FROM "${model}" ${table} WHERE ${tied} AND ${conditionOn(writer, model, where, table)}`;
}

function counts(writer: Writer, model: ModelName, wanted: object, table: string): string {
  const pairs = Object.entries(wanted).map(([name, query]: [string, unknown]) => {
    const relation = listOf(model, name);
    const inner = writer.nextTable();
    const where = query === true ? {} : onlyEntry(`the count of ${name}`, query, 'where');
    return `'${name}', (${count(writer, relation.model, where, inner, joinOn(relation, inner, table))})`;
  });
  if (pairs.length === 0) throw new Error(`nothing is counted of ${model}`);
  return `json_build_object(${pairs.join(', ')})`;
}

/**
 * A time as a number of milliseconds. The text of a time depends on settings of the session, on the history of the time
 * zone, and on whether it is in JSON.
 */
const milliseconds = (column: string) => `extract(epoch FROM ${column}) * 1000`;

function rowCount(name: string, count: number | Slot): number | Slot {
  if (count instanceof Slot) return count;
  if (!Number.isSafeInteger(count) || count < 0)
    throw new Error(`${name} is a number of rows, and not ${count}`);
  return count;
}

function selectionOf(name: string, wanted: unknown): Record<string, unknown> {
  const select = isRecord(wanted) ? wanted.select : undefined;
  if (!isRecord(select)) throw new Error(`${name} takes true, or a select`);
  return select;
}

function queryOf(name: string, wanted: unknown): SelectQuery {
  const select = selectionOf(name, wanted);
  // It has a selection, so it is an object; its other properties are checked when the SQL is written.
  return { ...(wanted as object), select };
}
