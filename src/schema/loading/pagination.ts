/** Pagination: checks the arguments for a page, plans its query, and arranges its rows as a connection. */

import { type Planning, type RowOrder, Slot } from '../../database/reader/query.ts';
import { argumentError } from '../../errors.ts';
import { type CursorOrder, readCursor, writeCursor } from './cursors.ts';
import { orderBy, rowsAfter, rowsBefore } from './keyset.ts';

export interface PageArguments {
  first?: number | null | undefined;
  last?: number | null | undefined;
  after?: string | null | undefined;
  before?: string | null | undefined;
  offset?: number | null | undefined;
}

/** The checked arguments of a page. */
export interface PageRequest {
  readonly size: number;
  /** How many records to skip. */
  readonly offset: number;
  /** Whether the page is taken from the end of the list. */
  readonly isBackward: boolean;
  readonly after: string | undefined;
  readonly before: string | undefined;
}

export interface PagePlan {
  readonly order: CursorOrder;
  /** Whether the page has neither filter, order nor cursors: then all pages of a variant have the same query. */
  readonly isDefault: boolean;
  readonly variant: string;
  /** The part of a query that fetches the page, and one more row to find out whether the list continues. */
  query(): { where?: object; orderBy: RowOrder[]; take: Slot; skip?: Slot };
  /** A list that the client filters or orders is planned for each run. */
  readonly planning: Planning;
  /** The values of the query's slots. */
  readonly slotValues: { readonly take: number; readonly skip: number };
  /** The rows that `query` fetched, as a Relay connection. */
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
export function readPageRequest({ first, last, after, before, offset }: PageArguments): PageRequest {
  checkSize('first', first);
  checkSize('last', last);
  const isBackward = last != null;
  // An omitted `first` has its default value here, which a client may also have sent.
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
 * @param condition a further condition on the rows.
 * @throws a client error that names the argument which is wrong.
 */
export function planPage(order: CursorOrder, args: PageArguments, condition?: object): PagePlan {
  const request = readPageRequest(args);
  const { size, offset, isBackward, after, before } = request;
  const conditions = [
    ...(condition ? [condition] : []),
    ...(after === undefined ? [] : [rowsAfter(order, readCursor(order, 'after', after))]),
    ...(before === undefined ? [] : [rowsBefore(order, readCursor(order, 'before', before))]),
  ];
  return {
    order,
    isDefault: order.fingerprint === undefined && conditions.length === 0,
    planning: { plansEachTime: order.fingerprint !== undefined },
    variant: `${isBackward ? 'last' : 'first'}${offset > 0 ? ' behind others' : ''}`,
    query: () => ({
      ...(conditions.length > 0 && { where: { AND: conditions } }),
      orderBy: orderBy(order, isBackward),
      take,
      ...(offset > 0 && { skip }),
    }),
    slotValues: { take: size + 1, skip: offset },
    connect: (rows, totalCount) => connect(rows, request, (row) => writeCursor(order, row), totalCount),
  };
}

/**
 * A page as a Relay connection.
 * @param rows the rows of the page in the order in which they were read, and one more if the list continues.
 */
export function connect<Row>(
  rows: readonly Row[],
  { size, offset, isBackward, after, before }: PageRequest,
  cursorOf: (row: Row) => string,
  totalCount: TotalCount,
): Connection<Row> {
  const more = rows.length > size;
  const nodes = rows.slice(0, size);
  if (isBackward) nodes.reverse();
  const hasNextPage = isBackward ? before !== undefined : more;
  const hasPreviousPage = isBackward ? more : after !== undefined || offset > 0;
  return new Page(nodes, new PageInfo(nodes, cursorOf, hasNextPage, hasPreviousPage), cursorOf, totalCount);
}

// Edges and cursors are only made if the operation selects them. The getters are those of classes: V8 gives each object literal
// that has a getter a hidden class of its own, which survives minor garbage collections together with all that the getter uses.

class Page<Row> implements Connection<Row> {
  readonly nodes: Row[];
  readonly pageInfo: PageInfo<Row>;
  readonly totalCount: TotalCount;
  readonly #cursorOf: (row: Row) => string;

  constructor(nodes: Row[], pageInfo: PageInfo<Row>, cursorOf: (row: Row) => string, totalCount: TotalCount) {
    this.nodes = nodes;
    this.pageInfo = pageInfo;
    this.totalCount = totalCount;
    this.#cursorOf = cursorOf;
  }

  get edges(): Edge<Row>[] {
    return this.nodes.map((node) => new Edge(node, this.#cursorOf));
  }
}

class Edge<Row> {
  readonly node: Row;
  readonly #cursorOf: (row: Row) => string;

  constructor(node: Row, cursorOf: (row: Row) => string) {
    this.node = node;
    this.#cursorOf = cursorOf;
  }

  get cursor(): string {
    return this.#cursorOf(this.node);
  }
}

class PageInfo<Row> {
  readonly hasNextPage: boolean;
  readonly hasPreviousPage: boolean;
  readonly #nodes: readonly Row[];
  readonly #cursorOf: (row: Row) => string;

  constructor(
    nodes: readonly Row[],
    cursorOf: (row: Row) => string,
    hasNextPage: boolean,
    hasPreviousPage: boolean,
  ) {
    this.hasNextPage = hasNextPage;
    this.hasPreviousPage = hasPreviousPage;
    this.#nodes = nodes;
    this.#cursorOf = cursorOf;
  }

  get startCursor(): string | null {
    return this.#cursorAt(0);
  }

  get endCursor(): string | null {
    return this.#cursorAt(-1);
  }

  #cursorAt(place: number): string | null {
    const node = this.#nodes.at(place);
    return node === undefined ? null : this.#cursorOf(node);
  }
}

function checkSize(argument: string, size: number | null | undefined) {
  if (size != null && (size < 1 || size > pageSize.highest)) {
    throw argumentError(argument, pageErrors.size(argument));
  }
}
