/**
 * Cursors: a position in a list, as text for clients. The cursor of a list in its default order holds the time and the id of
 * a row. The cursor of a filtered or ordered list holds the values of all order keys, and a fingerprint of the filter
 * and the order that it belongs to.
 */

import { createHash } from 'node:crypto';
import { largestId } from '../../database/ids.ts';
import { valuesOf } from '../../database/reader/models.ts';
import { argumentError } from '../../errors.ts';
import type { KeyValue, Order, OrderKey, Position } from './keyset.ts';

/** The order of a list, with the fingerprint in its cursors. */
export interface CursorOrder extends Order {
  /** Differs for each combination of filter and order; undefined for a list without `where` and `orderBy`. */
  readonly fingerprint?: string | undefined;
}

/** A position in a list of several kinds of rows, with the kind of its row. */
export interface NamedPosition<Kind extends string> extends Position {
  readonly kind: Kind;
}

/** A position in any list, read from a cursor. */
interface ReadPosition extends Position {
  readonly kind: string | undefined;
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
    return toJson(value);
  });
  if (order.fingerprint !== undefined)
    return encode(JSON.stringify([order.fingerprint, row.id, values, kind]));
  return encode(`${kind === undefined ? '' : `${kind}:`}${values[0] ?? ''}/${row.id}`);
}

/** A value as JSON can represent it: infinite numbers and NaN as text. */
function toJson(value: KeyValue): number | string | boolean | null {
  const plain = value instanceof Date ? Number(value) : value;
  return typeof plain === 'number' && !Number.isFinite(plain) ? String(plain) : plain;
}

/**
 * Reads the position that `writeCursor` wrote. A cursor may be forged or belong to another list, so values that this order
 * cannot have must not reach the database.
 * @throws a client error for a cursor that this list cannot have given.
 */
export function readCursor(order: CursorOrder, argument: string, cursor: string): Position {
  const position = read(order, argument, cursor);
  return position && position.kind === undefined ? position : foreignCursor(argument);
}

/** Reads a cursor of a list of several kinds of rows. Otherwise like `readCursor`. */
export function readNamedCursor<Kind extends string>(
  kinds: readonly Kind[],
  order: CursorOrder,
  argument: string,
  cursor: string,
): NamedPosition<Kind> {
  const position = read(order, argument, cursor);
  const kind = kinds.find((each) => each === position?.kind);
  return position && kind !== undefined ? { ...position, kind } : foreignCursor(argument);
}

function foreignCursor(argument: string): never {
  throw argumentError(argument, `${argument} must be a cursor that this list has given`);
}

function read(order: CursorOrder, argument: string, cursor: string): ReadPosition | undefined {
  const text = decode(cursor);
  const fingerprinted = readFingerprinted(text);
  // The text is a valid cursor, but it belongs to another filter or order than the request's.
  const isOfOtherList = fingerprinted
    ? fingerprinted[0] !== order.fingerprint
    : order.fingerprint !== undefined && isPlain(text);
  if (isOfOtherList) {
    throw argumentError(
      argument,
      `${argument} is a cursor of a list with another where or orderBy: ask with those that it came with, or without it`,
    );
  }
  return fingerprinted ? readValues(order, fingerprinted) : readPlain(order, text);
}

type FingerprintedCursor = readonly [fingerprint: string, id: unknown, values: unknown, kind?: unknown];

function readFingerprinted(text: string): FingerprintedCursor | undefined {
  if (!text.startsWith('["')) return undefined;
  try {
    const parts: unknown = JSON.parse(text);
    return Array.isArray(parts) && typeof parts[0] === 'string'
      ? (parts as unknown as FingerprintedCursor)
      : undefined;
  } catch {
    return undefined;
  }
}

function readValues({ keys }: Order, [, id, values, kind]: FingerprintedCursor): ReadPosition | undefined {
  if (!isId(id) || !Array.isArray(values) || values.length !== keys.length) return undefined;
  if (kind !== undefined && kind !== null && typeof kind !== 'string') return undefined;
  const read = keys.map((key, index) => readValue(key, values[index]));
  return read.every((value) => value !== undefined)
    ? { values: read, id, kind: kind ?? undefined }
    : undefined;
}

const plainCursor = /^(?:(\w+):)?(-?(?:\d{1,16}|Infinity))?\/(\d{1,10})$/;
const isPlain = (text: string) => plainCursor.test(text);

function readPlain({ keys }: Order, text: string): ReadPosition | undefined {
  const [, kind, time, digits] = plainCursor.exec(text) ?? [];
  const id = Number(digits);
  const [key] = keys;
  if (!isId(id) || (key === undefined && time !== undefined)) return undefined;
  if (key === undefined) return { values: [], id, kind };
  const value = readValue(key, time === undefined ? null : Number(time));
  return value === undefined ? undefined : { values: [value], id, kind };
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

const encode = (text: string): string => Buffer.from(text).toString('base64url');
const decode = (cursor: string): string => Buffer.from(cursor, 'base64url').toString();
