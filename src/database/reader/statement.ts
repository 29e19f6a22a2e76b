/**
 * Reads written as one SQL statement each: rows, with the rows of their relations beside them as JSON.
 *
 * Queries are written in a part of Prisma's own language, and mean what they mean to Prisma's client, which the
 * tests hold this module against; what is beyond that part is an error. The client takes longer to turn a query into
 * SQL and rows into objects than all else does that a request needs of this process.
 */

import { getDatamodel } from '../generated/pothos.ts';
import type { Prisma } from '../generated/prisma/client.ts';

export type Model = Prisma.ModelName;

/** A query for rows. Its names are those of the data model, and never a client's. */
export interface RowQuery {
  /** Columns, as `true`; relations to lists, as queries for their rows; `_count`, as Prisma has it. */
  readonly select: Readonly<Record<string, unknown>>;
  readonly where?: object;
  readonly orderBy?: RowOrder | readonly RowOrder[];
  readonly take?: number;
  readonly skip?: number;
}

/** One direction, or one with a place for nulls, by column. */
export type RowOrder = Readonly<
  Record<string, 'asc' | 'desc' | { sort: 'asc' | 'desc'; nulls: 'first' | 'last' }>
>;

export interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

export interface RowStatement extends Statement {
  /** What has to become of the rows that the statement gives, before they are as the data model says. */
  readonly shape: Shape;
}

/** Where in rows there are times, and numbers, which JSON cannot hold all of. */
interface Shape {
  readonly times: readonly string[];
  readonly floats: readonly string[];
  readonly nested: readonly { readonly name: string; readonly shape: Shape }[];
}

/** @throws an error for a query that is beyond this module. */
export function selectStatement(model: Model, query: RowQuery): RowStatement {
  const values: unknown[] = [];
  return { ...createWriter(values).select(model, query), values };
}

/** Counts rows, in a column called `count`. */
export function countStatement(model: Model, where: object): Statement {
  const values: unknown[] = [];
  return { text: createWriter(values).count(model, where), values };
}

/** Makes of what a statement gave what the data model says, in place. */
export function revive(rows: readonly object[], { times, floats, nested }: Shape): void {
  if (times.length === 0 && floats.length === 0 && nested.length === 0) return;
  for (const row of rows as readonly Record<string, unknown>[]) {
    for (const name of times) if (row[name] !== null) row[name] = timeOf(Number(row[name]));
    // JSON has text for what is no finite number.
    for (const name of floats) if (typeof row[name] === 'string') row[name] = Number(row[name]);
    // The statement gives an array for each relation.
    for (const { name, shape } of nested) revive(row[name] as object[], shape);
  }
}

/** A `Date` cannot be infinite, though a time in PostgreSQL can: it stays the number that it is to `pg` as well. */
const timeOf = (milliseconds: number) =>
  Math.abs(milliseconds) === Number.POSITIVE_INFINITY ? milliseconds : new Date(milliseconds);

interface Relation {
  readonly model: Model;
  readonly isList: boolean;
  /** The columns that are equal in rows that belong together: in the model of the field, and in the other one. */
  readonly here: string;
  readonly there: string;
}

/** A column, or a relation. */
interface Field {
  readonly type: string;
  readonly relation?: Relation;
}

const models = readModels();

function fieldOf(model: Model, name: string): Field {
  const field = models.get(model)?.get(name);
  if (!field) throw new Error(`${model} has no field ${name}`);
  // Rows of JSON would have them as text, and nobody asks for any.
  if (field.type === 'Bytes' || field.type === 'BigInt')
    throw new Error(`${model}.${name} is of type ${field.type}, which this module does not read`);
  return field;
}

function columnOf(model: Model, name: string, table: string): string {
  if (fieldOf(model, name).relation) throw new Error(`${model}.${name} is no column`);
  return `${table}."${name}"`;
}

/** The rows of a relation. One to a single row would have to give a row or null, and nobody asks for any. */
function listOf(model: Model, name: string): Relation {
  const { relation } = fieldOf(model, name);
  if (!relation?.isList) throw new Error(`${model}.${name} is no list of rows`);
  return relation;
}

const queryParts = new Set(['select', 'where', 'orderBy', 'take', 'skip']);

/** Writes statements whose parameters go into `values`. */
function createWriter(values: unknown[]) {
  let tables = 0;
  const nextTable = () => `t${tables++}`;
  const parameter = (value: unknown) => `$${values.push(parameterOf(value))}`;

  /** @param tie the condition that ties the rows to those of an outer table. */
  function select(model: Model, query: RowQuery, table = nextTable(), tie = 'true') {
    for (const part of Object.keys(query))
      if (!queryParts.has(part)) throw new Error(`${part} is not a part of a query of this module`);
    const columns: string[] = [];
    const times: string[] = [];
    const floats: string[] = [];
    const nested: { name: string; shape: Shape }[] = [];
    for (const [name, wanted] of Object.entries(query.select)) {
      if (name === '_count') {
        columns.push(`${counts(model, selectionOf(name, wanted), table)} AS "_count"`);
      } else if (wanted === true) {
        const column = columnOf(model, name, table);
        const { type } = fieldOf(model, name);
        if (type === 'DateTime') times.push(name);
        if (type === 'Float') floats.push(name);
        columns.push(type === 'DateTime' ? `${milliseconds(column)} AS "${name}"` : column);
      } else {
        const relation = listOf(model, name);
        const inner = nextTable();
        const below = select(
          relation.model,
          { ...(wanted as object), select: selectionOf(name, wanted) },
          inner,
          tied(relation, inner, table),
        );
        columns.push(`(SELECT coalesce(json_agg(rows), '[]') FROM (${below.text}) rows) AS "${name}"`);
        nested.push({ name, shape: below.shape });
      }
    }
    if (columns.length === 0) throw new Error(`nothing is selected of ${model}`);
    const { where = {}, orderBy = [], take, skip } = query;
    const order = sort(model, orderBy, table);
    const limit = take === undefined ? '' : ` LIMIT ${parameter(rowCount('take', take))}`;
    const source = `FROM "${model}" ${table} WHERE ${tie} AND ${condition(model, where, table)}${order}`;
    const page = skip
      ? // What is selected of a row is computed for the rows that an offset skips as well, unless it is outside.
        `FROM (SELECT ${table}.* ${source}${limit} OFFSET ${parameter(rowCount('skip', skip))}) ${table}${order}`
      : source + limit;
    return { text: `SELECT ${columns.join(', ')} ${page}`, shape: { times, floats, nested } };
  }

  function count(model: Model, where: object, table = nextTable(), tie = 'true'): string {
    return `SELECT count(*)::int FROM "${model}" ${table} WHERE ${tie} AND ${condition(model, where, table)}`;
  }

  function counts(model: Model, wanted: object, table: string): string {
    const pairs = Object.entries(wanted).map(([name, query]: [string, unknown]) => {
      const relation = listOf(model, name);
      const inner = nextTable();
      const where = query === true ? {} : record(`the count of ${name}`, query, 'where');
      return `'${name}', (${count(relation.model, where, inner, tied(relation, inner, table))})`;
    });
    if (pairs.length === 0) throw new Error(`nothing is counted of ${model}`);
    return `json_build_object(${pairs.join(', ')})`;
  }

  function condition(model: Model, where: object, table: string): string {
    const parts = Object.entries(where).map(([name, wanted]: [string, unknown]) => {
      if (name === 'AND') return several(model, name, wanted, table).join(' AND ');
      if (name === 'OR') return `(${several(model, name, wanted, table).join(' OR ')})`;
      const { relation } = fieldOf(model, name);
      if (relation) return related(relation, name, wanted, table);
      return comparison(`${table}."${name}"`, wanted);
    });
    return parts.length === 0 ? 'true' : parts.join(' AND ');
  }

  /** Whether nothing is true or false depends on where it stands, to Prisma: it has to be spelt out. */
  function several(model: Model, name: string, wanted: unknown, table: string): string[] {
    if (!Array.isArray(wanted) || wanted.length === 0) throw new Error(`${name} takes a list of conditions`);
    return wanted.map((each: unknown) => {
      if (!isRecord(each) || Object.keys(each).length === 0)
        throw new Error(`${name} takes conditions that say something`);
      return `(${condition(model, each, table)})`;
    });
  }

  /** Of a list, `some` row meets the condition; of a link, the one row does. */
  function related(relation: Relation, name: string, wanted: unknown, table: string): string {
    const inner = nextTable();
    const where = relation.isList ? record(name, wanted, 'some') : wanted;
    if (!isRecord(where) || (!relation.isList && Object.keys(where).length === 0))
      throw new Error(`${name} takes a condition`);
    const met = condition(relation.model, where, inner);
    return `EXISTS (SELECT FROM "${relation.model}" ${inner} WHERE ${tied(relation, inner, table)} AND ${met})`;
  }

  function comparison(column: string, wanted: unknown): string {
    if (wanted === null) return `${column} IS NULL`;
    if (!isRecord(wanted)) return `${column} = ${parameter(wanted)}`;
    const parts = Object.entries(wanted).map(([operator, value]: [string, unknown]) => {
      if (operator === 'in' && Array.isArray(value))
        return `${column} = ANY($${values.push(value.map(parameterOf))})`;
      if (operator === 'not' && value === null) return `${column} IS NOT NULL`;
      const symbol = symbols.get(operator);
      if (symbol === undefined) throw new Error(`${operator} is not an operator of this module`);
      return `${column} ${symbol} ${parameter(value)}`;
    });
    if (parts.length === 0) throw new Error(`nothing is said of ${column}`);
    return parts.join(' AND ');
  }

  return { select, count };
}

const symbols = new Map([
  ['lt', '<'],
  ['lte', '<='],
  ['gt', '>'],
  ['gte', '>='],
]);

const tied = ({ here, there }: Relation, inner: string, outer: string) =>
  `${inner}."${there}" = ${outer}."${here}"`;

/**
 * A time as PostgreSQL has it, rather than as text: how that is written depends on settings of the session, on the
 * time zone's history, and on whether it is in JSON.
 */
const milliseconds = (column: string) => `extract(epoch FROM ${column}) * 1000`;

/** Like PostgreSQL, Prisma has nulls first in a descending order unless told otherwise. */
function sort(model: Model, orderBy: RowOrder | readonly RowOrder[], table: string): string {
  const parts = [orderBy].flat().flatMap((each) =>
    Object.entries(each).map(([name, how]) => {
      const { sort, nulls } = typeof how === 'string' ? { sort: how, nulls: undefined } : how;
      const direction = directions.get(sort);
      const place = places.get(nulls);
      if (direction === undefined || place === undefined)
        throw new Error(`${JSON.stringify(how)} is not an order of this module`);
      return columnOf(model, name, table) + direction + place;
    }),
  );
  return parts.length === 0 ? '' : ` ORDER BY ${parts.join(', ')}`;
}

const directions = new Map([
  ['asc', ' asc'],
  ['desc', ' desc'],
]);

const places = new Map([
  [undefined, ''],
  ['first', ' NULLS FIRST'],
  ['last', ' NULLS LAST'],
]);

/** What `pg` is to send for a value. */
function parameterOf(value: unknown): unknown {
  if (value instanceof Date) return timeText(value);
  if (typeof value === 'number' || typeof value === 'boolean') return value;
  if (typeof value !== 'string') throw new Error(`${String(value)} cannot be compared with`);
  // PostgreSQL rejects the one, and `pg` sends something else for the other.
  if (/\0|\p{Surrogate}/u.test(value))
    throw new Error(`${JSON.stringify(value)} is nothing that a column can hold`);
  return value;
}

/** In UTC: in the time zone of this process, as `pg` would write it, seconds of old offsets get lost. */
function timeText(time: Date): string {
  const year = time.getUTCFullYear();
  const written = String(year < 1 ? 1 - year : year).padStart(4, '0');
  // What follows the year, however that is written, has the same length in each ISO 8601.
  return `${written}${time.toISOString().slice(-'-01-01T00:00:00.000Z'.length)}${year < 1 ? ' BC' : ''}`;
}

function rowCount(name: string, count: number): number {
  if (!Number.isSafeInteger(count) || count < 0)
    throw new Error(`${name} is a number of rows, and not ${count}`);
  return count;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);

/** What an object has under the one name that it may have. */
function record(of: string, value: unknown, name: string): Record<string, unknown> {
  const inner = isRecord(value) ? value[name] : undefined;
  if (!isRecord(value) || !isRecord(inner) || Object.keys(value).length > 1)
    throw new Error(`${of} takes ${name} and nothing else`);
  return inner;
}

function selectionOf(name: string, wanted: unknown): Record<string, unknown> {
  const select = isRecord(wanted) ? wanted.select : undefined;
  if (!isRecord(select)) throw new Error(`${name} takes true, or a select`);
  return select;
}

/** The fields of each model. Every relation of the data model leads to an `id`. */
function readModels(): ReadonlyMap<Model, ReadonlyMap<string, Field>> {
  // What Prisma generates has these models, and no others.
  const given = Object.entries(getDatamodel().datamodel.models) as [Model, DataModel][];
  const foreignKeyOf = (model: string, relationName: string | undefined) => {
    const [, { fields }] = given.find(([name]) => name === model) ?? ['', { fields: [] }];
    return fields.find((field) => field.relationName === relationName && field.relationFromFields?.length)
      ?.relationFromFields?.[0];
  };
  return new Map(
    given.map(([model, { fields }]) => [
      model,
      new Map(
        fields.map(({ name, type, isList, relationName, relationFromFields }): [string, Field] => {
          if (relationName === undefined) return [name, { type }];
          const [own] = relationFromFields ?? [];
          const here = own ?? 'id';
          const there = own === undefined ? foreignKeyOf(type, relationName) : 'id';
          if (there === undefined) throw new Error(`${model}.${name} leads nowhere`);
          return [name, { type, relation: { model: type as Model, isList, here, there } }];
        }),
      ),
    ]),
  );
}

interface DataModel {
  readonly fields: readonly {
    readonly name: string;
    readonly type: string;
    readonly isList: boolean;
    readonly relationName?: string;
    readonly relationFromFields?: readonly string[];
  }[];
}
