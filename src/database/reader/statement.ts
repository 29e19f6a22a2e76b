/**
 * Translates each query to one SQL statement, which reads rows and, as JSON, the rows of their relations.
 *
 * A query means the same as in Prisma's client, which the tests compare this module with. A part of Prisma's language that
 * this module does not support is an error. Prisma's client takes more time to translate queries and to build objects from
 * rows than all the rest of a request takes in this process.
 */

import type { Column } from './batch.ts';
import { columnOf, fieldOf, listOf } from './dataModel.ts';
import type { ModelName, SelectQuery } from './query.ts';
import { conditionOn, createWriter, isRecord, joinOn, onlyEntry, orderedBy, type Writer } from './where.ts';

export interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

export interface RowStatement extends Statement {
  /** How to read each column of the result, so that its value has the type of the data model. */
  readonly columns: readonly Column[];
}

/** A column that can be read from the text of a statement's result, and from the JSON in another row. */
interface JsonColumn extends Column {
  /** Converts a value that JSON cannot represent, and which is not null. By default it stays. */
  readonly fromJson?: ((value: unknown) => unknown) | undefined;
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

/** Returns what converts the values of JSON rows to the types of the data model, in place. */
function converterOf(columns: readonly JsonColumn[]) {
  const converted = columns.flatMap(({ name, fromJson }) => (fromJson ? [{ name, fromJson }] : []));
  return (value: unknown): unknown => {
    // The statement returns an array for each relation.
    const rows = value as Record<string, unknown>[];
    if (converted.length > 0)
      for (const row of rows)
        for (const { name, fromJson } of converted) if (row[name] !== null) row[name] = fromJson(row[name]);
    return rows;
  };
}

/**
 * A time that no `Date` can represent stays a number: an infinite one, as in `pg`, and one after the year 275760. The years of
 * PostgreSQL end with 294276.
 */
function timeOf(written: unknown): Date | number {
  const milliseconds = Number(written);
  return Math.abs(milliseconds) <= furthestDate ? new Date(milliseconds) : milliseconds;
}

/** In milliseconds from the epoch, in either direction. */
const furthestDate = 8.64e15;

/** @param tied the condition that joins the rows to those of an outer table. */
function select(
  writer: Writer,
  model: ModelName,
  query: SelectQuery,
  table = writer.nextTable(),
  tied = 'true',
): { text: string; columns: readonly JsonColumn[] } {
  const { parts, columns } = selectedColumns(writer, model, query.select, table);
  const { where = {}, orderBy = [], take, skip } = query;
  const order = orderedBy(model, orderBy, table);
  const limit = take === undefined ? undefined : writer.parameter(take);
  const offset = skip ? writer.parameter(skip) : undefined;
  const limitText = limit ? ` LIMIT ${limit}` : '';
  const source = `FROM "${model}" ${table} WHERE ${tied} AND ${conditionOn(writer, model, where, table)}`;
  const page = offset
    ? // In a subquery, since otherwise PostgreSQL computes the selected fields for the skipped rows as well.
      `FROM (SELECT ${table}.* ${source}${order}${limitText} OFFSET ${offset}) ${table}${order}`
    : source + order + limitText;
  return { text: `SELECT ${parts.join(', ')} ${page}`, columns };
}

function selectedColumns(writer: Writer, model: ModelName, selection: object, table: string) {
  const parts: string[] = [];
  const columns: JsonColumn[] = [];
  const entries: [string, unknown][] = Object.entries(selection);
  for (const [name, wanted] of entries) {
    if (name === '_count') {
      parts.push(`${counts(writer, model, queryOf(name, wanted).select, table)} AS "_count"`);
      columns.push({ name, read: JSON.parse });
    } else if (wanted === true) {
      const column = columnOf(model, name, table);
      const { type } = fieldOf(model, name);
      parts.push(type === 'DateTime' ? `${milliseconds(column)} AS "${name}"` : column);
      columns.push({ name, ...(readers.get(type) ?? { read: asText }) });
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
      const fromJson = converterOf(below.columns);
      columns.push({ name, read: (text) => fromJson(JSON.parse(text)), fromJson });
    }
  }
  if (parts.length === 0) throw new Error(`nothing is selected of ${model}`);
  return { parts, columns };
}

/** How to read the text of a column, by its type. Text and enumeration values stay as they are. */
const asText = (text: string) => text;
const readers = new Map<string, Omit<JsonColumn, 'name'>>([
  ['Int', { read: Number }],
  // In JSON, numbers that are not finite are text.
  ['Float', { read: Number, fromJson: Number }],
  ['Boolean', { read: (text) => text === 't' }],
  ['DateTime', { read: timeOf, fromJson: timeOf }],
]);

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
    const where = query === true ? {} : onlyEntry(query, 'where');
    if (!isRecord(where)) throw new Error(`the count of ${name} takes where and nothing else`);
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

/** A query for related rows, or for counts. */
function queryOf(name: string, wanted: unknown): SelectQuery {
  if (isRecord(wanted) && isRecord(wanted.select)) return { ...wanted, select: wanted.select };
  throw new Error(`${name} takes true, or a select`);
}
