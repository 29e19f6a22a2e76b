/** Pagination: checks the arguments for a page, plans its query, and arranges its rows as a connection. */

import { type DeviceType, Slot } from '../../database/models.ts';
import { argumentError } from '../../errors.ts';
import { type Order, orderBy, readCursor, rowsBeyond, writeCursor } from './keyset.ts';
import type { RowQuery } from './rows.ts';

export interface PageArguments {
  first?: number | null | undefined;
  last?: number | null | undefined;
  after?: string | null | undefined;
  before?: string | null | undefined;
  offset?: number | null | undefined;
}

/** The checked arguments of a page. */
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

export interface Connection<Row> {
  readonly nodes: Row[];
  readonly edges: { readonly cursor: string; readonly node: Row }[];
  readonly pageInfo: {
    readonly hasNextPage: boolean;
    readonly hasPreviousPage: boolean;
    readonly startCursor: string | null;
    readonly endCursor: string | null;
  };
  readonly totalCount: TotalCount;
}

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
  if (offset != null && offset < 0) throw argumentError('offset', pageErrors.offset);
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
    connect: (rows, totalCount) => connect(rows, request, (row) => writeCursor(order, row), totalCount),
  };
}

/**
 * A page as a Relay connection.
 * @param rows the rows of the page in the order in which they were read, and one more if the list continues.
 */
export function connect<Row>(
  rows: readonly Row[],
  request: PageRequest,
  cursorOf: (row: Row) => string,
  totalCount: TotalCount,
): Connection<Row> {
  const nodes = rows.slice(0, request.size);
  if (request.isBackward) nodes.reverse();
  const { isBackward, offset, after, before } = request;
  const hasMore = rows.length > request.size;
  const cursorAt = (index: number) => {
    const row = nodes.at(index);
    return row === undefined ? null : cursorOf(row);
  };
  return new LazyConnection(nodes, totalCount, {
    edges: () => nodes.map((node) => ({ node, cursor: cursorOf(node) })),
    pageInfo: () => ({
      hasNextPage: isBackward ? before != null : hasMore,
      hasPreviousPage: isBackward ? hasMore : after != null || offset > 0,
      startCursor: cursorAt(0),
      endCursor: cursorAt(-1),
    }),
  });
}

type LazyParts<Row> = { readonly [Part in 'edges' | 'pageInfo']: () => Connection<Row>[Part] };

/**
 * Edges and cursors are only made if the operation selects them. The getters are those of a class: V8 gives each object literal
 * that has a getter a hidden class of its own, which survives minor garbage collections together with all that the getter uses.
 */
class LazyConnection<Row> implements Connection<Row> {
  readonly nodes: Row[];
  readonly totalCount: TotalCount;
  readonly #later: LazyParts<Row>;

  constructor(nodes: Row[], totalCount: TotalCount, later: LazyParts<Row>) {
    this.nodes = nodes;
    this.totalCount = totalCount;
    this.#later = later;
  }

  get edges() {
    return this.#later.edges();
  }

  get pageInfo() {
    return this.#later.pageInfo();
  }
}

function checkSize(argument: string, size: number | null | undefined) {
  if (size != null && (size < 1 || size > pageSize.highest)) {
    throw argumentError(argument, pageErrors.size(argument));
  }
}
