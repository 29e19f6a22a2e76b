/**
 * Translates each query to one SQL statement, which reads rows and, as JSON, the rows of their relations.
 *
 * A query means the same as in Prisma's client, which the tests compare this module with. A part of Prisma's language that
 * this module does not support is an error. Prisma's client takes more time to translate queries and to build objects from
 * rows than all the rest of a request takes in this process.
 */

import { columnOf, fieldOf, listRelation, type Relation } from '../dataModel.ts';
import { type ModelName, Slot, type SlotValues } from '../models.ts';

type Direction = 'asc' | 'desc' | { readonly sort: 'asc' | 'desc'; readonly nulls: 'first' | 'last' };

export type RowOrder = Readonly<Record<string, Direction>>;

/** A name that is not a field of the model, and a part that is not supported, are errors when the SQL is written. */
export interface SelectQuery {
  /** Columns, as `true`; relations to lists, as queries for their rows; `_count`, as Prisma has it. */
  readonly select: object;
  /** A condition on columns, on `some` row of a list, or on the one row of a link. */
  readonly where?: object;
  readonly orderBy?: RowOrder | readonly RowOrder[];
  readonly take?: number | Slot;
  readonly skip?: number | Slot;
  /**
   * Whether PostgreSQL plans the statement for the values of each run. Otherwise it may reuse one plan for all values
   * (`plan_cache_mode`): faster, but a bad guess where the number of matching rows depends on the values.
   */
  readonly plansEachTime?: boolean;
}

/** A column of a row, and how its text is read. */
export interface Column {
  readonly name: string;
  read(text: string): unknown;
}

export interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
  /** By default the server describes the columns, and `pg` reads them. */
  readonly columns?: readonly Column[] | undefined;
}

/** A column that can be read from the text of a statement's result, and from the JSON in another row. */
interface JsonColumn extends Column {
  /** Converts a value that JSON cannot represent, and which is not null. By default it stays. */
  readonly fromJson?: ((value: unknown) => unknown) | undefined;
}

/** @throws an error for a query that this module does not support. */
export function selectStatement(model: ModelName, query: SelectQuery): Statement {
  const values: unknown[] = [];
  const { text, columns } = select(createWriter(values), model, query);
  return { text, values, columns };
}

/** Counts rows, in a column called `count`. */
export function countStatement(model: ModelName, where: object): Statement {
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
    for (const row of rows)
      for (const { name, fromJson } of converted) if (row[name] !== null) row[name] = fromJson(row[name]);
    return rows;
  };
}

/**
 * A time that no `Date` can represent stays a number: an infinite one, as in `pg`, and one after the year 275760. The years of
 * PostgreSQL end with 294276.
 */
function readTime(written: unknown): Date | number {
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
      const relation = listRelation(model, name);
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
  ['DateTime', { read: readTime, fromJson: readTime }],
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
    const relation = listRelation(model, name);
    const inner = writer.nextTable();
    const where = query === true ? {} : onlyEntry(query, 'where');
    if (!isCondition(where)) throw new Error(`the count of ${name} takes where and nothing else`);
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
  if (isCondition(wanted) && isCondition(wanted.select)) return { ...wanted, select: wanted.select };
  throw new Error(`${name} takes true, or a select`);
}

/** Shared by all parts of one statement: its parameters and table names. */
export type Writer = ReturnType<typeof createWriter>;

/** @param values receives the parameters. */
export function createWriter(values: unknown[]) {
  let tables = 0;
  return {
    /** Adds a parameter, and returns its placeholder, such as $1. */
    parameter: (value: unknown) => `$${values.push(value instanceof Slot ? value : parameterOf(value))}`,
    listParameter: (list: readonly unknown[] | Slot) =>
      `$${values.push(list instanceof Slot ? list : list.map(parameterOf))}`,
    /** Returns an alias that no other table of the statement has. */
    nextTable: () => `t${tables++}`,
  };
}

/** The parameters of a statement, with slots replaced by the values of one run. */
export function fillSlots(values: readonly unknown[], given: SlotValues = {}): unknown[] {
  return values.map((value) => {
    if (!(value instanceof Slot)) return value;
    const filling = given[value.name];
    return Array.isArray(filling) ? filling.map(parameterOf) : parameterOf(filling);
  });
}

export function conditionOn(writer: Writer, model: ModelName, where: object, table: string): string {
  const parts = Object.entries(where).map(([name, wanted]: [string, unknown]) => {
    if (name === 'AND') return conditionsOn(writer, model, wanted, table).join(' AND ');
    if (name === 'OR') return `(${conditionsOn(writer, model, wanted, table).join(' OR ')})`;
    if (name === 'NOT') return `NOT ${conditionsOn(writer, model, [wanted], table)[0]}`;
    const { relation } = fieldOf(model, name);
    if (!relation) return comparison(writer, `${table}."${name}"`, wanted);
    // `some` row of a list, or the one row of a link, has to meet the condition.
    const inner = writer.nextTable();
    const [met] = conditionsOn(
      writer,
      relation.model,
      [relation.isList ? onlyEntry(wanted, 'some') : wanted],
      inner,
    );
    return `EXISTS (SELECT FROM "${relation.model}" ${inner} WHERE ${joinOn(relation, inner, table)} AND ${met})`;
  });
  return parts.length === 0 ? 'true' : parts.join(' AND ');
}

/** How many tables a condition joins to that of its rows. */
export function countJoins(model: ModelName, where: object): number {
  return Object.entries(where).reduce((joins, [name, wanted]: [string, unknown]) => {
    if (name === 'AND' || name === 'OR' || name === 'NOT')
      return [wanted]
        .flat()
        .filter(isCondition)
        .reduce((sum, each) => sum + countJoins(model, each), joins);
    const { relation } = fieldOf(model, name);
    if (!relation) return joins;
    const met = relation.isList ? onlyEntry(wanted, 'some') : wanted;
    return joins + 1 + (isCondition(met) ? countJoins(relation.model, met) : 0);
  }, 0);
}

/**
 * The conditions of a list, each in parentheses. An empty list is rejected: to Prisma an empty AND is true, and an empty OR
 * is false.
 */
function conditionsOn(writer: Writer, model: ModelName, wanted: unknown, table: string): string[] {
  if (!Array.isArray(wanted) || wanted.length === 0 || !wanted.every(isCondition))
    throw new Error(`${JSON.stringify(wanted)} is not a list of conditions`);
  return wanted.map((each) => `(${conditionOn(writer, model, each, table)})`);
}

function comparison(writer: Writer, column: string, wanted: unknown): string {
  if (wanted === null) return `${column} IS NULL`;
  if (!isCondition(wanted)) return `${column} = ${writer.parameter(wanted)}`;
  const { mode, ...operators } = wanted;
  const parts = Object.entries(operators).map(([operator, value]: [string, unknown]) => {
    if (operator === 'in' && (Array.isArray(value) || value instanceof Slot))
      return `${column} = ANY(${writer.listParameter(value)})`;
    if (operator === 'not' && value === null) return `${column} IS NOT NULL`;
    // As a pattern, in which %, _ and \\ have their meaning in LIKE.
    const beginning = patterns.get(operator);
    if (beginning !== undefined && mode === 'insensitive' && typeof value === 'string')
      return `${column} ILIKE ${writer.parameter(`${beginning}${value}%`)}`;
    const symbol = symbols.get(operator);
    if (symbol === undefined || mode !== undefined)
      throw new Error(`${operator} is not an operator of this module`);
    return `${column} ${symbol} ${writer.parameter(value)}`;
  });
  if (parts.length === 0) throw new Error(`nothing is said of ${column}`);
  return parts.join(' AND ');
}

const patterns = new Map([
  ['contains', '%'],
  ['startsWith', ''],
]);

const symbols = new Map([
  ['equals', '='],
  ['not', '<>'],
  ['lt', '<'],
  ['lte', '<='],
  ['gt', '>'],
  ['gte', '>='],
]);

/** The condition that joins the rows of a relation to those of an outer table. */
export function joinOn({ model, join }: Relation, inner: string, outer: string): string {
  if (!join) throw new Error(`a ${model} is not joined by an id`);
  return `${inner}."${join.there}" = ${outer}."${join.here}"`;
}

/** The ORDER BY of a statement. By default both PostgreSQL and Prisma put nulls first in a descending order. */
function orderedBy(model: ModelName, orderBy: RowOrder | readonly RowOrder[], table: string): string {
  const parts = [orderBy].flat().flatMap((each) =>
    Object.entries(each).map(([name, how]) => {
      const { sort, nulls } = typeof how === 'string' ? { sort: how, nulls: undefined } : how;
      return `${columnOf(model, name, table)} ${sort}${nulls ? ` nulls ${nulls}` : ''}`;
    }),
  );
  return parts.length === 0 ? '' : ` ORDER BY ${parts.join(', ')}`;
}

/** Whether a column can hold the text. PostgreSQL rejects NUL, and `pg` replaces half of a surrogate pair by another character. */
export const isText = (text: string): boolean => !/\0|\p{Surrogate}/u.test(text);

function parameterOf(value: unknown): unknown {
  if (value instanceof Date) return timeText(value);
  if (typeof value === 'number' || typeof value === 'boolean') return value;
  if (typeof value !== 'string') throw new Error(`${String(value)} cannot be compared with`);
  if (!isText(value)) throw new Error(`${JSON.stringify(value)} is nothing that a column can hold`);
  return value;
}

/** A time as text in UTC. `pg` would write it in the time zone of this process and lose the seconds of historical offsets. */
export function timeText(time: Date): string {
  const year = time.getUTCFullYear();
  const written = String(year < 1 ? 1 - year : year).padStart(4, '0');
  // The part after the year always has the same length in ISO 8601.
  return `${written}${time.toISOString().slice(-'-01-01T00:00:00.000Z'.length)}${year < 1 ? ' BC' : ''}`;
}

/** Whether a value is a part of a query, and no value of a column. */
const isCondition = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  !(value instanceof Date || value instanceof Slot);

/** The value of the only property that an object may have; undefined for any other object. */
function onlyEntry(value: unknown, name: string): unknown {
  return isCondition(value) && Object.keys(value).length === 1 ? value[name] : undefined;
}
