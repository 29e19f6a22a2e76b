/** Reads the arguments of a list that decide which records it has and in which order. */

import type { Viewer } from '../../auth/viewer.ts';
import { isRecord } from '../../http/json.ts';
import { type CursorOrder, fingerprintOf } from '../loading/cursors.ts';
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
  readonly order: CursorOrder;
  readonly filter: ListFilter;
}

export interface ListFilter {
  /** Undefined if all rows meet the filter. */
  readonly condition: object | undefined;
  /** The filter as text: equal filters have the same, whatever the order of their fields. */
  readonly key: string;
}

/**
 * Reads `where` and `orderBy`.
 * @param defaultOrder the order of the list without `orderBy`.
 * @throws a client error that names the argument which is wrong.
 */
export function readList(
  type: ListedType,
  defaultOrder: Order,
  { where, orderBy }: ListArguments,
  viewer: Viewer,
): ListRequest {
  const condition = readFilter(type, where, viewer);
  const order = readOrder(type, orderBy);
  const key = condition ? JSON.stringify(where, sortFields) : '';
  // Cursors of the list without `where` and `orderBy` have no fingerprint: clients may hold old ones, which must stay valid.
  const fingerprint = condition || order ? fingerprintOf(type, order ?? defaultOrder, key) : undefined;
  return { order: { ...(order ?? defaultOrder), fingerprint }, filter: { condition, key } };
}

/** A replacer for `JSON.stringify` that sorts the fields of objects. */
function sortFields(_name: string, value: unknown): unknown {
  return isRecord(value)
    ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
    : value;
}
