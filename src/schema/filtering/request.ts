/** What the arguments of a list ask for, beside the page. */

import type { Viewer } from '../../auth/viewer.ts';
import { type MarkedOrder, markOf } from '../loading/cursors.ts';
import type { Order } from '../loading/keyset.ts';
import type { PageArguments } from '../loading/pagination.ts';
import { readFilter } from './condition.ts';
import type { ListedType } from './filterable.ts';
import { readOrder } from './order.ts';
import type { FilterInput, OrderInput } from './refs.ts';

export interface ListArguments extends PageArguments {
  readonly where?: FilterInput | null | undefined;
  readonly orderBy?: readonly OrderInput[] | null | undefined;
}

export interface ListRequest {
  readonly order: MarkedOrder;
  readonly filter: ListFilter;
}

export interface ListFilter {
  /** Undefined for all rows. */
  readonly condition: object | undefined;
  /** The same text for filters that say the same. */
  readonly key: string;
}

/**
 * Reads `where` and `orderBy`.
 * @param usual the order of the list as it comes.
 * @throws a client error that names the argument which is wrong.
 */
export function readList(
  type: ListedType,
  usual: Order,
  { where, orderBy }: ListArguments,
  viewer: Viewer,
): ListRequest {
  const condition = readFilter(type, where, viewer);
  const order = readOrder(type, orderBy);
  const key = condition ? JSON.stringify(where, inOrder) : '';
  // Cursors of the list as it comes stay what they always were.
  const mark = condition || order ? markOf(type, order ?? usual, key) : undefined;
  return { order: { ...(order ?? usual), mark }, filter: { condition, key } };
}

/** Has the fields of an object in one order, however a client writes them. */
function inOrder(_name: string, value: unknown): unknown {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
    : value;
}
