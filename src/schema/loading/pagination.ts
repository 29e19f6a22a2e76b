/** How a list is cut into pages: arguments checked, cursors read and written, the rows arranged. */

import { largestId } from '../../database/ids.ts';
import type { RowOrder } from '../../database/reader/query.ts';
import { clientError } from '../../errors.ts';

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
interface Position {
  /** Infinite times, of which there is no `Date`, are numbers. */
  time: Date | number | null;
  id: number;
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
 * Plans one page of a list.
 * @throws a client error that names the argument which is out of bounds.
 */
export function planPage(order: Order, args: PageArguments): PagePlan {
  const { first, last, after, before, offset } = args;
  checkSize('first', first);
  checkSize('last', last);
  if (first != null && last != null) throw badInput('first and last cannot be used together');
  if (offset != null && offset < 0) throw badInput(pageErrors.offset);
  if (offset != null && last != null) throw badInput('offset and last cannot be used together');

  const backward = last != null;
  const size = first ?? last ?? pageSize.default;
  const bounds = [
    ...(after != null ? [behind(order, readCursor(order, 'after', after))] : []),
    ...(before != null ? [ahead(order, readCursor(order, 'before', before))] : []),
  ];
  return {
    query: {
      ...(bounds.length > 0 && { where: { AND: bounds } }),
      orderBy: orderBy(order, backward),
      take: size + 1,
      ...(offset ? { skip: offset } : undefined),
    },
    connect(rows) {
      const more = rows.length > size;
      const page = rows.slice(0, size);
      if (backward) page.reverse();
      // Cursors are written for those who ask for them.
      const edges = page.map((node) => ({
        get cursor() {
          return writeCursor(order, node);
        },
        node,
      }));
      return {
        edges,
        pageInfo: {
          hasNextPage: backward ? before != null : more,
          hasPreviousPage: backward ? more : after != null || Boolean(offset),
          get startCursor() {
            return edges[0]?.cursor ?? null;
          },
          get endCursor() {
            return edges.at(-1)?.cursor ?? null;
          },
        },
      };
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
function behind({ by, nullable }: Order, { time, id }: Position): object {
  if (!by) return { id: { lt: id } };
  if (time === null) return { [by]: null, id: { lt: id } };
  const older = { [by]: { lte: time }, OR: [{ [by]: { lt: time } }, { id: { lt: id } }] };
  return nullable ? { OR: [older, { [by]: null }] } : older;
}

/** Rows that come before the position. */
function ahead({ by }: Order, { time, id }: Position): object {
  if (!by) return { id: { gt: id } };
  if (time === null) return { OR: [{ [by]: { not: null } }, { [by]: null, id: { gt: id } }] };
  return { [by]: { gte: time }, OR: [{ [by]: { gt: time } }, { id: { gt: id } }] };
}

function writeCursor({ by }: Order, row: { id: number }): string {
  // Only the column that the order names is read, and the schema makes it a time.
  const time = by ? ((row as Record<string, unknown>)[by] as Position['time']) : null;
  if (Number.isNaN(Number(time))) throw new Error(`the ${by} of ${row.id} is beyond what a cursor can hold`);
  return Buffer.from(`${time === null ? '' : Number(time)}/${row.id}`).toString('base64url');
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

/** A cursor may be forged, or come from another list: what this order cannot have must not reach the database. */
function readCursor({ by, nullable }: Order, argument: string, cursor: string): Position {
  const [, text, digits] =
    /^(-?(?:\d{1,16}|Infinity))?\/(\d{1,10})$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
  const time = text === undefined ? null : readTime(text);
  const id = Number(digits);
  const fits = time === null ? !by || nullable : by !== undefined && time !== undefined;
  if (digits === undefined || id > largestId || time === undefined || !fits) {
    throw badInput(`${argument} must be a cursor that this list has given`);
  }
  return { time, id };
}

function checkSize(argument: string, size: number | null | undefined) {
  if (size != null && (size < 1 || size > pageSize.highest)) {
    throw badInput(pageErrors.size(argument));
  }
}

const badInput = (message: string) => clientError('BAD_USER_INPUT', message);
