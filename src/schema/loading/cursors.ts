/**
 * Cursors: where a row stands in a list, as text for clients. A cursor holds the values of all order keys, the id, and a
 * fingerprint of the filter and the order that it belongs to.
 */

import { createHash } from 'node:crypto';
import { largestId } from '../../database/ids.ts';
import { valuesOf } from '../../database/reader/dataModel.ts';
import { argumentError } from '../../errors.ts';
import { parseJson } from '../../http/json.ts';
import type { CursorValues, KeyValue, Order, OrderKey } from './keyset.ts';

/** The order of a list, with the fingerprint in its cursors. */
export interface CursorOrder extends Order {
  /** Differs for each combination of filter and order; undefined for a list without `where` and `orderBy`. */
  readonly fingerprint?: string | undefined;
}

/** @param parts everything that the cursors depend on, as values that JSON can represent. */
export const fingerprintOf = (...parts: readonly unknown[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 12);

/** The cursor of a row that has the columns of the order. */
export function writeCursor(order: CursorOrder, row: { id: number }, kind?: string): string {
  const values = order.keys.map(({ column, type }) => {
    // The columns of the order are selected with each row, and lists are ordered only by columns with such values.
    const value = (row as Record<string, unknown>)[column] as KeyValue;
    // Such a time may have more digits than a number, and a cursor that is off by a millisecond repeats rows or skips them.
    if (type === 'DateTime' && Number.isFinite(value))
      throw new Error(`the ${column} of ${row.id} is beyond what a cursor can hold`);
    return value instanceof Date ? String(Number(value)) : JSON.stringify(toJson(value));
  });
  // Written by hand, since lists have many cursors. None of the texts has a character that JSON escapes.
  const parts = `["${order.fingerprint ?? ''}",${row.id},[${values}],${kind === undefined ? 'null' : `"${kind}"`}]`;
  return Buffer.from(parts).toString('base64url');
}

/** A value as JSON can represent it: infinite numbers and NaN as text. */
const toJson = (value: Exclude<KeyValue, Date>) =>
  typeof value === 'number' && !Number.isFinite(value) ? String(value) : value;

/**
 * Reads what `writeCursor` wrote. A cursor may be forged or belong to another list, so values that this order cannot have must
 * not reach the database.
 * @throws a client error for a cursor that this list cannot have given.
 */
export function readCursor(order: CursorOrder, argument: string, cursor: string): CursorValues {
  const { kind, ...values } = read(order, argument, cursor);
  return kind === undefined ? values : foreignCursor(argument);
}

/** Reads a cursor of a list of several kinds of rows. Otherwise like `readCursor`. */
export function readNamedCursor<Kind extends string>(
  kinds: readonly Kind[],
  order: CursorOrder,
  argument: string,
  cursor: string,
): CursorValues & { readonly kind: Kind } {
  const { kind: name, ...values } = read(order, argument, cursor);
  const kind = kinds.find((each) => each === name);
  return kind === undefined ? foreignCursor(argument) : { ...values, kind };
}

function foreignCursor(argument: string): never {
  throw argumentError(argument, `${argument} must be a cursor that this list has given`);
}

function read(
  { keys, fingerprint = '' }: CursorOrder,
  argument: string,
  cursor: string,
): CursorValues & { readonly kind: unknown } {
  const parts = parseJson(Buffer.from(cursor, 'base64url').toString());
  if (!Array.isArray(parts)) return foreignCursor(argument);
  const [mark, id, values, kind]: unknown[] = parts;
  if (typeof mark === 'string' && mark !== fingerprint)
    throw argumentError(
      argument,
      `${argument} is a cursor of a list with another where or orderBy: ask with those that it came with, or without it`,
    );
  if (mark !== fingerprint || !isId(id) || !Array.isArray(values) || values.length !== keys.length)
    return foreignCursor(argument);
  const read = keys.map((key, index) => {
    const value = readValue(key, values[index]);
    return value === undefined ? foreignCursor(argument) : value;
  });
  return { values: read, id, kind: kind ?? undefined };
}

const isId = (id: unknown): id is number =>
  Number.isInteger(id) && Number(id) >= 0 && Number(id) <= largestId;

/** @returns undefined for a value that the column cannot have. */
function readValue({ type, isNullable }: OrderKey, value: unknown): KeyValue | undefined {
  if (value === null) return isNullable ? null : undefined;
  if (type === 'DateTime') return readTime(value);
  if (type === 'Float') return readFloat(value);
  if (type === 'Int') return readInteger(value);
  if (type === 'Boolean') return typeof value === 'boolean' ? value : undefined;
  if (typeof value !== 'string') return undefined;
  const known = valuesOf(type);
  return (known ? known.includes(value) : isText(value)) ? value : undefined;
}

function readInteger(value: unknown): number | undefined {
  // The lowest integer of 32 bits is one further from zero than the highest.
  return Number.isInteger(value) && Number(value) <= largestId && -Number(value) <= largestId + 1
    ? Number(value)
    : undefined;
}

function readFloat(value: unknown): number | undefined {
  if (value === 'NaN') return Number.NaN;
  return typeof value === 'number' ? value : readInfinite(value);
}

const readInfinite = (value: unknown): number | undefined =>
  value === 'Infinity' || value === '-Infinity' ? Number(value) : undefined;

/** The times that both PostgreSQL and JavaScript can represent. PostgreSQL's first day is November 24, 4714 BC. */
const earliest = Date.parse('-004713-11-24T00:00:00.000Z');
const latest = 8.64e15;

function readTime(value: unknown): Date | number | undefined {
  if (typeof value !== 'number' || !Number.isFinite(value))
    return typeof value === 'number' && !Number.isNaN(value) ? value : readInfinite(value);
  return Number.isInteger(value) && value >= earliest && value <= latest ? new Date(value) : undefined;
}

/** Whether a column can hold the text. PostgreSQL accepts neither NUL nor half of a surrogate pair. */
export const isText = (text: string): boolean => !/\0|\p{Surrogate}/u.test(text);
