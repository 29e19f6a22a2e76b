/**
 * Pages of lists: the order of a list, its cursors, conditions on the rows before and after a cursor (keyset pagination), and the rows
 * of a page as a connection. A cursor is text for clients. It holds the values of all order keys, the id, and a fingerprint of the
 * filter and the order that it belongs to.
 */

import { createHash } from 'node:crypto';
import { z } from 'zod';
import { fieldOf } from '../../database/dataModel.ts';
import { largestId } from '../../database/ids.ts';
import {
  type DeviceType,
  deviceTypes,
  type ListedType,
  type ModelName,
  models,
  Slot,
} from '../../database/models.ts';
import { isText, type RowOrder } from '../../database/reader/statement.ts';
import { argumentError } from '../../errors.ts';
import { parseJson } from '../../http/json.ts';
import type { RowQuery } from './rows.ts';

/** A column that a list is ordered by. Rows without a value come last in both directions. */
export interface OrderKey {
  readonly column: string;
  /** The type of the column in the data model. */
  readonly type: string;
  readonly isNullable: boolean;
  readonly isDescending: boolean;
}

/** Rows are compared by the keys in turn; ties are broken by id. */
export interface Order {
  readonly keys: readonly OrderKey[];
  /** Whether ties are broken in descending order of ids. */
  readonly isDescending: boolean;
  /** Differs for each combination of filter and order; undefined for a list without `where` and `orderBy`. */
  readonly fingerprint?: string | undefined;
}

/** The default order of the lists of a type: newest first by a time. */
export const defaultOrder = (type: ListedType): Order => ({
  keys: [orderKey(type, models[type].order, true)],
  isDescending: true,
});

export function orderKey(model: ModelName, column: string, isDescending: boolean): OrderKey {
  const { type, isRequired } = fieldOf(model, column);
  return { column, type, isNullable: !isRequired, isDescending };
}

/** @param parts everything that the cursors depend on, as values that JSON can represent. */
export const fingerprintOf = (...parts: readonly unknown[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 12);

/** The `orderBy` of a query for the order, or for its reverse. */
export function orderBy({ keys, isDescending }: Order, reverse = false): RowOrder[] {
  const sortOf = (descending: boolean) => (descending === reverse ? 'asc' : 'desc');
  return [
    ...keys.map((key): RowOrder => {
      const sort = sortOf(key.isDescending);
      return { [key.column]: key.isNullable ? { sort, nulls: reverse ? 'first' : 'last' } : sort };
    }),
    { id: sortOf(isDescending) },
  ];
}

/** The value of a key. An infinite time is a number, since a `Date` cannot represent it. */
export type KeyValue = Date | number | string | boolean | null;

/** The content of a cursor: the values of its row by which the list is ordered. */
interface CursorValues {
  /** One for each key of the order. */
  readonly values: readonly KeyValue[];
  /** Infinite for a cursor before or after all rows with the same values. */
  readonly id: number;
}

/** The condition for rows before a cursor, or after it. The bound on a single key is redundant, but an index can use it. */
function rowsBeyond(
  { keys, isDescending }: Order,
  { values, id }: CursorValues,
  way: 'after' | 'before',
): object {
  const isAfter = way === 'after';
  const operatorOf = (descending: boolean) => (descending === isAfter ? 'lt' : 'gt');
  return keys.reduceRight<object>(
    (equalRows, { column, isNullable, isDescending }, index) => {
      const value = values[index] ?? null;
      const isNull = { [column]: null };
      if (value === null) {
        const amongNulls = { AND: [isNull, equalRows] };
        return isAfter ? amongNulls : { OR: [{ [column]: { not: null } }, amongNulls] };
      }
      const operator = operatorOf(isDescending);
      const further = {
        [column]: { [`${operator}e`]: value },
        OR: [{ [column]: { [operator]: value } }, equalRows],
      };
      return isAfter && isNullable ? { OR: [further, isNull] } : further;
    },
    { id: compareId(operatorOf(isDescending), id) },
  );
}

/** PostgreSQL cannot compare an integer with an infinite number, so every id meets the condition, or none. */
function compareId(operator: 'lt' | 'gt', id: number): object {
  if (Number.isFinite(id)) return { [operator]: id };
  return id > 0 === (operator === 'lt') ? { not: null } : { in: [] };
}

/** The cursor of a row that has the columns of the order. */
export function writeCursor(order: Order, row: { id: number }, kind?: string): string {
  const values = order.keys.map(({ column, type }) => {
    // The columns of the order are selected with each row, and lists are ordered only by columns with such values.
    const value = (row as Record<string, unknown>)[column] as KeyValue;
    // A time that is no `Date` may have more digits than a number can hold. A cursor that is off by a millisecond repeats or skips rows.
    if (type === 'DateTime' && Number.isFinite(value))
      throw new Error(`the ${column} of ${row.id} is beyond what a cursor can hold`);
    if (value instanceof Date) return String(Number(value));
    // JSON has no infinite numbers.
    return JSON.stringify(typeof value === 'number' && !Number.isFinite(value) ? String(value) : value);
  });
  // Written by hand for speed, since lists have many cursors. No text here has a character that JSON escapes.
  const parts = `["${order.fingerprint ?? ''}",${row.id},[${values}],${kind === undefined ? 'null' : `"${kind}"`}]`;
  return Buffer.from(parts).toString('base64url');
}

const cursorParts = z.tuple([
  z.string(),
  z.int().min(0).max(largestId),
  z.array(z.unknown()),
  z.string().nullable(),
]);

/**
 * Reads what `writeCursor` wrote. A cursor may be forged or belong to another list, so values that this order cannot have must
 * not reach the database.
 * @param kind for a list of all devices, the kind whose rows are read after or before the cursor.
 * @throws a client error for a cursor that does not come from this list.
 */
export function readCursor(
  { keys, fingerprint = '' }: Order,
  argument: 'after' | 'before',
  cursor: string,
  kind?: DeviceType,
): CursorValues {
  const [mark, id, given = [], name] =
    cursorParts.safeParse(parseJson(Buffer.from(cursor, 'base64url').toString())).data ?? [];
  if (mark !== undefined && mark !== fingerprint)
    throw argumentError(
      argument,
      `${argument} is a cursor of a list with another where or orderBy: ask with those that it came with, or without it`,
    );
  const values = keys.map((key, index) => schemaOf(key).safeParse(given[index]).data);
  const its = deviceTypes.find((each) => each === name);
  const isForeign = given.length !== keys.length || (kind ? !its : name !== null);
  if (id === undefined || isForeign || !areKnown(values))
    throw argumentError(argument, `${argument} must be a cursor that this list has given`);
  if (!kind || !its || kind === its) return { values, id };
  // Ties are broken by kind and then by id in one direction, as if an earlier kind had higher ids than any later one.
  const isEarlier = deviceTypes.indexOf(kind) < deviceTypes.indexOf(its);
  return { values, id: isEarlier ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY };
}

const areKnown = <Value>(values: readonly (Value | undefined)[]): values is Value[] =>
  !values.includes(undefined);

const infinite = z.enum(['Infinity', '-Infinity']).transform(Number);

/** The times that both PostgreSQL and JavaScript can represent. PostgreSQL's first day is November 24, 4714 BC. */
const time = z.int().min(Date.parse('-004713-11-24T00:00:00.000Z')).max(8.64e15);

/** The values of a key in a cursor, by the scalar of its column. */
const valuesOfTypes: Readonly<Record<string, z.ZodType<KeyValue>>> = {
  DateTime: infinite.or(time.transform((value) => new Date(value))),
  Float: z.number(),
  Int: z.int32(),
  Boolean: z.boolean(),
  String: z.string().refine(isText),
};

function schemaOf({ type, isNullable }: OrderKey): z.ZodType<KeyValue> {
  const known = valuesOfTypes[type];
  if (!known) throw new Error(`Lists cannot be ordered by a ${type}`);
  return isNullable ? known.nullable() : known;
}

export interface PageArguments {
  first?: number | null | undefined;
  last?: number | null | undefined;
  after?: string | null | undefined;
  before?: string | null | undefined;
  offset?: number | null | undefined;
}

interface PageRequest extends Pick<PageArguments, 'after' | 'before'> {
  readonly size: number;
  /** How many records to skip. */
  readonly offset: number;
  /** Whether the page is taken from the end of the list. */
  readonly isBackward: boolean;
}

/** The query for the rows of a page, and one more to find out whether the list continues. */
interface Page extends RowQuery {
  readonly values: { readonly take: number; readonly skip: number };
  /** The rows of the query as a Relay connection. */
  connect<Row extends { id: number }>(rows: readonly Row[], totalCount: TotalCount): Connection<Row>;
}

const take = new Slot('take');
const skip = new Slot('skip');

/** Counts the records of the whole list. */
type TotalCount = () => Promise<number>;

/** How many records a page of a list has, in both APIs. */
export const pageSize = { default: 50, highest: 100 } as const;

/** The error messages for the arguments of a page, in both APIs. */
export const pageErrors = {
  size: (argument: string) => `${argument} must be an integer from 1 to ${pageSize.highest}`,
  offset: 'offset must be an integer of at least 0',
} as const;

/**
 * Checks the arguments of a page.
 * @throws a client error that names the argument which is out of bounds.
 */
export function checkPage({ first, last, offset, ...cursors }: PageArguments): PageRequest {
  checkSize('first', first);
  checkSize('last', last);
  const isBackward = last != null;
  // An omitted `first` has its default value here, which a client may also have sent.
  if (isBackward && first != null && first !== pageSize.default)
    throw argumentError('first', 'first and last cannot be used together');
  if ((offset ?? 0) < 0) throw argumentError('offset', pageErrors.offset);
  if (isBackward && offset) throw argumentError('offset', 'offset and last cannot be used together');
  return { ...cursors, size: last ?? first ?? pageSize.default, offset: offset ?? 0, isBackward };
}

/**
 * Plans one page of a list.
 * @param condition a further condition on the rows.
 * @param kind for a list of all devices, the kind whose part of the page is read. All skipped rows might be of this kind.
 * @throws a client error that names the argument which is wrong.
 */
export function planPage(order: Order, args: PageArguments, condition?: object, kind?: DeviceType): Page {
  const request = checkPage(args);
  const { size, isBackward } = request;
  const [offset, more] = kind ? [0, request.offset] : [request.offset, 0];
  const beyond = (['after', 'before'] as const).flatMap((way) => {
    const cursor = request[way];
    return cursor == null ? [] : [rowsBeyond(order, readCursor(order, way, cursor, kind), way)];
  });
  const conditions = [...(condition ? [condition] : []), ...beyond];
  const isDefault = order.fingerprint === undefined && conditions.length === 0;
  return {
    variant: isDefault ? `${isBackward ? 'last' : 'first'}${offset > 0 ? ' behind others' : ''}` : undefined,
    rows: () => ({
      ...(conditions.length > 0 && { where: { AND: conditions } }),
      orderBy: orderBy(order, isBackward),
      take,
      ...(offset > 0 && { skip }),
      // A list that the client filters or orders is planned for each run.
      plansEachTime: order.fingerprint !== undefined,
      // The columns that a cursor holds besides the id.
      columns: Object.fromEntries(order.keys.map(({ column }) => [column, true])),
    }),
    values: { take: more + size + 1, skip: offset },
    connect: (rows, totalCount) =>
      new Connection(rows, request, (row) => writeCursor(order, row), totalCount),
  };
}

/**
 * A page as a Relay connection. Edges and cursors are only made if the operation selects them. The getters are those of a class: V8 gives
 * each object literal that has a getter a hidden class of its own, which survives minor garbage collections together with all that the
 * getter uses.
 */
export class Connection<Row> {
  readonly nodes: Row[];
  readonly totalCount: TotalCount;
  readonly #hasMore: boolean;
  readonly #request: PageRequest;
  readonly #cursorOf: (row: Row) => string;

  /** @param rows the rows of the page in the order in which they were read, and one more if the list continues. */
  constructor(
    rows: readonly Row[],
    request: PageRequest,
    cursorOf: (row: Row) => string,
    totalCount: TotalCount,
  ) {
    this.nodes = rows.slice(0, request.size);
    if (request.isBackward) this.nodes.reverse();
    this.totalCount = totalCount;
    this.#hasMore = rows.length > request.size;
    this.#request = request;
    this.#cursorOf = cursorOf;
  }

  get edges() {
    return this.nodes.map((node) => ({ node, cursor: this.#cursorOf(node) }));
  }

  get pageInfo() {
    const { isBackward, offset, after, before } = this.#request;
    return {
      hasNextPage: isBackward ? before != null : this.#hasMore,
      hasPreviousPage: isBackward ? this.#hasMore : after != null || offset > 0,
      startCursor: this.#cursorAt(0),
      endCursor: this.#cursorAt(-1),
    };
  }

  #cursorAt(index: number): string | null {
    const row = this.nodes.at(index);
    return row === undefined ? null : this.#cursorOf(row);
  }
}

function checkSize(argument: string, size: number | null | undefined) {
  if (size != null && (size < 1 || size > pageSize.highest)) {
    throw argumentError(argument, pageErrors.size(argument));
  }
}
