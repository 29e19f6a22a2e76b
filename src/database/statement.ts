/**
 * Reads written as one SQL statement each: rows, with the rows of their relations beside them as JSON.
 *
 * Queries are written in a part of Prisma's own language, and mean what they mean to Prisma's client, which the
 * tests hold this module against. The client takes longer to turn a query into SQL and rows into objects than all
 * else does that a request needs of this process.
 */

import { getDatamodel } from '../generated/pothos.ts';
import type { Prisma } from '../generated/prisma/client.ts';

export type Model = Prisma.ModelName;

/** A query for rows. Its names are those of the data model, and never a client's. */
export interface RowQuery {
  /** Columns, as `true`; relations, as queries for their rows; `_count`, as Prisma has it. */
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

/** Where in nested rows, which come as JSON, there are times. */
interface Shape {
  readonly times: readonly string[];
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

/** Turns the times of nested rows into dates, in place. Those of the rows themselves come as dates. */
export function reviveTimes(rows: readonly object[], { nested }: Shape): void {
  for (const { name, shape } of nested) {
    if (shape.times.length === 0 && shape.nested.length === 0) continue;
    // The statement gives an array for each relation.
    for (const row of rows as readonly Record<string, Record<string, unknown>[]>[]) {
      const below = row[name] ?? [];
      for (const time of shape.times) {
        for (const each of below) if (typeof each[time] === 'string') each[time] = new Date(each[time]);
      }
      reviveTimes(below, shape);
    }
  }
}

interface Relation {
  readonly model: Model;
  /** The columns that are equal in rows that belong together: in the model of the field, and in the other one. */
  readonly here: string;
  readonly there: string;
}

interface Field {
  readonly isTime: boolean;
  readonly relation?: Relation;
}

const models = readModels();

function fieldOf(model: Model, name: string): Field {
  const field = models.get(model)?.get(name);
  if (!field) throw new Error(`${model} has no field ${name}`);
  return field;
}

/** Writes statements whose parameters go into `values`. */
function createWriter(values: unknown[]) {
  let tables = 0;
  const nextTable = () => `t${tables++}`;
  const parameter = (value: unknown) => `$${values.push(value)}`;

  /** @param tie the condition that ties the rows to those of an outer table. */
  function select(model: Model, query: RowQuery, table = nextTable(), tie = 'true') {
    const columns: string[] = [];
    const times: string[] = [];
    const nested: { name: string; shape: Shape }[] = [];
    for (const [name, wanted] of Object.entries(query.select)) {
      if (name === '_count') {
        columns.push(`${counts(model, wanted as CountQuery, table)} AS "_count"`);
        continue;
      }
      const { isTime, relation } = fieldOf(model, name);
      if (relation) {
        const inner = nextTable();
        const below = select(relation.model, wanted as RowQuery, inner, tied(relation, inner, table));
        columns.push(`(SELECT coalesce(json_agg(rows), '[]') FROM (${below.text}) rows) AS "${name}"`);
        nested.push({ name, shape: below.shape });
      } else {
        columns.push(`${table}."${name}"`);
        if (isTime) times.push(name);
      }
    }
    const { where = {}, orderBy, take, skip } = query;
    const order = orderBy ? ` ORDER BY ${sort(orderBy, table)}` : '';
    const limit = take === undefined ? '' : ` LIMIT ${parameter(take)}`;
    const source = `FROM "${model}" ${table} WHERE ${tie} AND ${condition(model, where, table)}${order}`;
    const page = skip
      ? // What is selected of a row is computed for the rows that an offset skips as well, unless it is outside.
        `FROM (SELECT ${table}.* ${source}${limit} OFFSET ${parameter(skip)}) ${table}${order}`
      : source + limit;
    return { text: `SELECT ${columns.join(', ')} ${page}`, shape: { times, nested } };
  }

  function count(model: Model, where: object, table = nextTable(), tie = 'true'): string {
    return `SELECT count(*)::int FROM "${model}" ${table} WHERE ${tie} AND ${condition(model, where, table)}`;
  }

  function counts(model: Model, { select: wanted }: CountQuery, table: string): string {
    const pairs = Object.entries(wanted).map(([name, { where = {} }]) => {
      const relation = relationOf(model, name);
      const inner = nextTable();
      return `'${name}', (${count(relation.model, where, inner, tied(relation, inner, table))})`;
    });
    return `json_build_object(${pairs.join(', ')})`;
  }

  function condition(model: Model, where: object, table: string): string {
    const parts = Object.entries(where).map(([name, wanted]: [string, unknown]) => {
      if (name === 'AND') return all(model, wanted as object[], table);
      if (name === 'OR') return any(model, wanted as object[], table);
      const { relation } = fieldOf(model, name);
      if (relation) return related(relation, wanted as object, table);
      return comparison(`${table}."${name}"`, wanted);
    });
    return parts.length === 0 ? 'true' : parts.join(' AND ');
  }

  const all = (model: Model, conditions: readonly object[], table: string) =>
    conditions.map((each) => `(${condition(model, each, table)})`).join(' AND ') || 'true';

  const any = (model: Model, conditions: readonly object[], table: string) =>
    `(${conditions.map((each) => `(${condition(model, each, table)})`).join(' OR ') || 'false'})`;

  /** Of a list, `some` row meets the condition; of a link, the one row does. */
  function related(relation: Relation, wanted: { some?: object }, table: string): string {
    const inner = nextTable();
    const met = condition(relation.model, wanted.some ?? wanted, inner);
    return `EXISTS (SELECT FROM "${relation.model}" ${inner} WHERE ${tied(relation, inner, table)} AND ${met})`;
  }

  function comparison(column: string, wanted: unknown): string {
    if (wanted === null) return `${column} IS NULL`;
    if (typeof wanted !== 'object' || wanted instanceof Date) return `${column} = ${parameter(wanted)}`;
    const parts = Object.entries(wanted).map(([operator, value]) => {
      if (operator === 'in') return `${column} = ANY(${parameter(value)})`;
      if (operator === 'not' && value === null) return `${column} IS NOT NULL`;
      const symbol = symbols.get(operator);
      if (symbol === undefined) throw new Error(`${operator} is not an operator of this module`);
      return `${column} ${symbol} ${parameter(value)}`;
    });
    return parts.join(' AND ');
  }

  return { select, count };
}

interface CountQuery {
  readonly select: Readonly<Record<string, { readonly where?: object }>>;
}

const symbols = new Map([
  ['lt', '<'],
  ['lte', '<='],
  ['gt', '>'],
  ['gte', '>='],
]);

const tied = ({ here, there }: Relation, inner: string, outer: string) =>
  `${inner}."${there}" = ${outer}."${here}"`;

function relationOf(model: Model, name: string): Relation {
  const { relation } = fieldOf(model, name);
  if (!relation) throw new Error(`${model}.${name} is no relation`);
  return relation;
}

/** Like PostgreSQL, Prisma has nulls first in a descending order unless told otherwise. */
function sort(orderBy: RowOrder | readonly RowOrder[], table: string): string {
  return [orderBy]
    .flat()
    .flatMap((each) => Object.entries(each))
    .map(([name, how]) => {
      const column = `${table}."${name}"`;
      return typeof how === 'string' ? `${column} ${how}` : `${column} ${how.sort} NULLS ${how.nulls}`;
    })
    .join(', ');
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
        fields.map(({ name, type, relationName, relationFromFields }): [string, Field] => {
          if (relationName === undefined) return [name, { isTime: type === 'DateTime' }];
          const [own] = relationFromFields ?? [];
          const here = own ?? 'id';
          const there = own === undefined ? foreignKeyOf(type, relationName) : 'id';
          if (there === undefined) throw new Error(`${model}.${name} leads nowhere`);
          return [name, { isTime: false, relation: { model: type as Model, here, there } }];
        }),
      ),
    ]),
  );
}

interface DataModel {
  readonly fields: readonly {
    readonly name: string;
    readonly type: string;
    readonly relationName?: string;
    readonly relationFromFields?: readonly string[];
  }[];
}
