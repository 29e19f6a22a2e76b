/** Writes the conditions of a statement, its parameters, and its ORDER BY. */

import { timeText } from './batch.ts';
import { columnOf, fieldOf, type Relation } from './dataModel.ts';
import { type ModelName, type RowOrder, Slot, type SlotValues } from './query.ts';

/** Shared by all parts of one statement: its parameters and table names. */
export interface Writer {
  /** Adds a parameter, and returns its placeholder, such as $1. */
  parameter(value: unknown): string;
  listParameter(values: readonly unknown[] | Slot): string;
  /** Returns an alias that no other table of the statement has. */
  nextTable(): string;
}

/** @param values receives the parameters. */
export function createWriter(values: unknown[]): Writer {
  let tables = 0;
  return {
    parameter: (value) => `$${values.push(value instanceof Slot ? value : parameterOf(value))}`,
    listParameter: (list) => `$${values.push(list instanceof Slot ? list : list.map(parameterOf))}`,
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

/**
 * The conditions of a list, each in parentheses. An empty list is rejected: to Prisma an empty AND is true, and an empty OR
 * is false.
 */
function conditionsOn(writer: Writer, model: ModelName, wanted: unknown, table: string): string[] {
  if (!Array.isArray(wanted) || wanted.length === 0 || !wanted.every(isRecord))
    throw new Error(`${JSON.stringify(wanted)} is not a list of conditions`);
  return wanted.map((each) => `(${conditionOn(writer, model, each, table)})`);
}

function comparison(writer: Writer, column: string, wanted: unknown): string {
  if (wanted === null) return `${column} IS NULL`;
  if (!isRecord(wanted)) return `${column} = ${writer.parameter(wanted)}`;
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
export const joinOn = ({ here, there }: Relation, inner: string, outer: string) =>
  `${inner}."${there}" = ${outer}."${here}"`;

/** The ORDER BY of a statement. By default both PostgreSQL and Prisma put nulls first in a descending order. */
export function orderedBy(model: ModelName, orderBy: RowOrder | readonly RowOrder[], table: string): string {
  const parts = [orderBy].flat().flatMap((each) =>
    Object.entries(each).map(([name, how]) => {
      const { sort, nulls } = typeof how === 'string' ? { sort: how, nulls: undefined } : how;
      return `${columnOf(model, name, table)} ${sort}${nulls ? ` NULLS ${nulls.toUpperCase()}` : ''}`;
    }),
  );
  return parts.length === 0 ? '' : ` ORDER BY ${parts.join(', ')}`;
}

/** A value as a parameter. */
function parameterOf(value: unknown): unknown {
  if (value instanceof Date) return timeText(value);
  if (typeof value === 'number' || typeof value === 'boolean') return value;
  if (typeof value !== 'string') throw new Error(`${String(value)} cannot be compared with`);
  // PostgreSQL rejects a zero byte, and `pg` replaces half of a surrogate pair by another character.
  if (/\0|\p{Surrogate}/u.test(value))
    throw new Error(`${JSON.stringify(value)} is nothing that a column can hold`);
  return value;
}

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  !(value instanceof Date || value instanceof Slot);

/** The value of the only property that an object may have; undefined for any other object. */
export function onlyEntry(value: unknown, name: string): unknown {
  return isRecord(value) && Object.keys(value).length === 1 ? value[name] : undefined;
}
