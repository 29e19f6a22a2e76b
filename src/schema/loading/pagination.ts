/** How a list is cut into pages: arguments checked, cursors read and written, the rows arranged. */

import { largestId } from '../../database/ids.ts';
import type { RowOrder } from '../../database/reader/query.ts';
import { argumentError } from '../../errors.ts';

export interface PageArguments {
  first?: number | null | undefined;
  last?: number | null | undefined;
  after?: string | null | undefined;
  before?: string | null | undefined;
  offset?: number | null | undefined;
}

/** Newest first by the time in the column `by`, if the list has one, ties broken by id. */
export interface Order {
  readonly by?: string;
  /** Whether `by` may be null; such rows come last. */
  readonly nullable?: boolean;
}

/** A place in a list: the values that the list is ordered by. */
export interface Position {
  /** Infinite times, of which there is no `Date`, are numbers. */
  readonly time: Date | number | null;
  /** Infinite for a place before or behind all rows of its time. */
  readonly id: number;
}

/** The arguments of a page, within their bounds. */
export interface PageRequest {
  readonly size: number;
  /** How many records to skip. */
  readonly offset: number;
  /** Whether the page is the end of the list. */
  readonly isBackward: boolean;
  readonly after: string | undefined;
  readonly before: string | undefined;
}

export interface PagePlan {
  /** The part of a Prisma query that fetches the page, and one row more to know whether the list goes on. */
  readonly query: { where?: object; orderBy: RowOrder[]; take: number; skip?: number };
  /** The rows that `query` fetched, as a Relay connection. */
  connect<Row extends { id: number }>(rows: readonly Row[]): Connection<Row>;
}

export interface Connection<Row> {
  edges: { cursor: string; node: Row }[];
  pageInfo: {
    hasNextPage: boolean;
    hasPreviousPage: boolean;
    startCursor: string | null;
    endCursor: string | null;
  };
}

/** How many records a page of a list has, in either API. */
export const pageSize = { default: 50, highest: 100 } as const;

/** What is wrong with the arguments for a page, in either API. */
export const pageErrors = {
  size: (argument: string) => `${argument} must be an integer from 1 to ${pageSize.highest}`,
  offset: 'offset must be an integer of at least 0',
} as const;

/**
 * Checks the arguments of a page.
 * @throws a client error that names the argument which is out of bounds.
 */
export function readPageRequest({ first, last, after, before, offset }: PageArguments): PageRequest {
  checkSize('first', first);
  checkSize('last', last);
  const isBackward = last != null;
  // What is not given has its default, which a client may as well have written.
  if (isBackward && first != null && first !== pageSize.default)
    throw argumentError('first', 'first and last cannot be used together');
  if (offset != null && offset < 0) throw argumentError('offset', pageErrors.offset);
  if (isBackward && offset) throw argumentError('offset', 'offset and last cannot be used together');
  return {
    size: last ?? first ?? pageSize.default,
    offset: offset ?? 0,
    isBackward,
    after: after ?? undefined,
    before: before ?? undefined,
  };
}

/**
 * Plans one page of a list.
 * @throws a client error that names the argument which is wrong.
 */
export function planPage(order: Order, args: PageArguments): PagePlan {
  const request = readPageRequest(args);
  const { size, offset, isBackward, after, before } = request;
  const bounds = [
    ...(after === undefined ? [] : [behind(order, readCursor(order, 'after', after))]),
    ...(before === undefined ? [] : [ahead(order, readCursor(order, 'before', before))]),
  ];
  return {
    query: {
      ...(bounds.length > 0 && { where: { AND: bounds } }),
      orderBy: orderBy(order, isBackward),
      take: size + 1,
      ...(offset > 0 && { skip: offset }),
    },
    connect: (rows) => connect(rows, request, (row) => encode(writePosition(order, row))),
  };
}

/**
 * A page as a Relay connection.
 * @param rows those of the page in the order that they were read in, and one more if the list goes on.
 */
export function connect<Row>(
  rows: readonly Row[],
  { size, offset, isBackward, after, before }: PageRequest,
  writeCursor: (row: Row) => string,
): Connection<Row> {
  const more = rows.length > size;
  const page = rows.slice(0, size);
  if (isBackward) page.reverse();
  // Cursors are written for those who ask for them.
  const edges = page.map((node) => ({
    get cursor() {
      return writeCursor(node);
    },
    node,
  }));
  return {
    edges,
    pageInfo: {
      hasNextPage: isBackward ? before !== undefined : more,
      hasPreviousPage: isBackward ? more : after !== undefined || offset > 0,
      get startCursor() {
        return edges[0]?.cursor ?? null;
      },
      get endCursor() {
        return edges.at(-1)?.cursor ?? null;
      },
    },
  };
}

/** Newest first, or the reverse of it. */
export function orderBy({ by, nullable }: Order, reverse = false): RowOrder[] {
  const sort = reverse ? 'asc' : 'desc';
  const byId: RowOrder = { id: sort };
  if (by === undefined) return [byId];
  return [{ [by]: nullable ? { sort, nulls: reverse ? 'first' : 'last' } : sort }, byId];
}

/** Rows that come after the position. The bound on the time alone, though implied, is what an index can use. */
export function behind({ by, nullable }: Order, { time, id }: Position): object {
  const lowerId = { id: lowerThan(id) };
  if (!by) return lowerId;
  if (time === null) return { [by]: null, ...lowerId };
  const older = { [by]: { lte: time }, OR: [{ [by]: { lt: time } }, lowerId] };
  return nullable ? { OR: [older, { [by]: null }] } : older;
}

/** Rows that come before the position. */
export function ahead({ by }: Order, { time, id }: Position): object {
  const higherId = { id: higherThan(id) };
  if (!by) return higherId;
  if (time === null) return { OR: [{ [by]: { not: null } }, { [by]: null, ...higherId }] };
  return { [by]: { gte: time }, OR: [{ [by]: { gt: time } }, higherId] };
}

/** What holds of all ids, and of none: no integer can be compared with an infinite number. */
const everyId = { not: null };
const noId = { in: [] };

function lowerThan(id: number): object {
  if (Number.isFinite(id)) return { lt: id };
  return id > 0 ? everyId : noId;
}

function higherThan(id: number): object {
  if (Number.isFinite(id)) return { gt: id };
  return id < 0 ? everyId : noId;
}

export const encode = (text: string): string => Buffer.from(text).toString('base64url');
export const decode = (cursor: string): string => Buffer.from(cursor, 'base64url').toString();

/** The place of a row, as its cursor says it. */
export function writePosition({ by }: Order, row: { id: number }): string {
  // Only the column that the order names is read, and the schema makes it a time.
  const time = by ? ((row as Record<string, unknown>)[by] as Position['time']) : null;
  if (Number.isNaN(Number(time))) throw new Error(`the ${by} of ${row.id} is beyond what a cursor can hold`);
  return `${time === null ? '' : Number(time)}/${row.id}`;
}

/** The times that are times to both PostgreSQL, whose first year is 4713 BC, and JavaScript. */
const earliest = Date.parse('-004712-01-01T00:00:00.000Z');
const latest = 8.64e15;

/** @returns undefined for what is no time. */
function readTime(text: string): Date | number | undefined {
  const time = Number(text);
  if (Math.abs(time) === Number.POSITIVE_INFINITY) return time;
  return time >= earliest && time <= latest ? new Date(time) : undefined;
}

function readCursor(order: Order, argument: string, cursor: string): Position {
  return readPosition(order, decode(cursor)) ?? foreignCursor(argument);
}

/**
 * The place that `writePosition` wrote. A cursor may be forged, or come from another list: what this order cannot have
 * must not reach the database.
 * @returns undefined for what it cannot have written.
 */
export function readPosition({ by, nullable }: Order, written: string): Position | undefined {
  const [, text, digits] = /^(-?(?:\d{1,16}|Infinity))?\/(\d{1,10})$/.exec(written) ?? [];
  const time = text === undefined ? null : readTime(text);
  const id = Number(digits);
  const fits = time === null ? !by || nullable : by !== undefined && time !== undefined;
  if (digits === undefined || id > largestId || time === undefined || !fits) return undefined;
  return { time, id };
}

/** @throws always. */
export function foreignCursor(argument: string): never {
  throw argumentError(argument, `${argument} must be a cursor that this list has given`);
}

function checkSize(argument: string, size: number | null | undefined) {
  if (size != null && (size < 1 || size > pageSize.highest)) {
    throw argumentError(argument, pageErrors.size(argument));
  }
}
