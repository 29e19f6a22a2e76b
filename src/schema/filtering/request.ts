/** Reads the arguments of a list that decide which records it has and in which order. */

import type { Viewer } from '../../auth/viewer.ts';
import { argumentError } from '../../errors.ts';
import { isRecord } from '../../http/json.ts';
import { defaultOrder, fingerprintOf, type Order, type OrderKey, orderKey } from '../loading/keyset.ts';
import type { PageArguments } from '../loading/pagination.ts';
import { type FilterableType, filterFields, isOrderable, modelOf, orderColumn, orderName } from './fields.ts';
import { bounds, type FilterInput, readFilter } from './filter.ts';

export interface OrderInput {
  /** The name that `orderName` gives the field. */
  readonly field: string;
  readonly direction: 'ASC' | 'DESC';
}

export interface ListArguments extends PageArguments {
  readonly where?: FilterInput | null | undefined;
  readonly orderBy?: readonly OrderInput[] | null | undefined;
}

export interface ListFilter {
  /** Undefined if all rows meet the filter. */
  readonly condition: object | undefined;
  /** The filter as text: equal filters have the same, whatever the order of their fields. */
  readonly key: string;
}

/**
 * Reads `where` and `orderBy`.
 * @throws a client error that names the argument which is wrong.
 */
export function readList(
  type: FilterableType,
  { where, orderBy }: ListArguments,
  viewer: Viewer,
): { readonly order: Order; readonly filter: ListFilter } {
  const condition = readFilter(type, where, viewer);
  const ordered = readOrder(type, orderBy);
  // The lists of all kinds of devices have the same default order.
  const order = ordered ?? defaultOrder(modelOf(type));
  const key = condition ? JSON.stringify(where, sortFields) : '';
  const fingerprint = condition || ordered ? fingerprintOf(type, order, key) : undefined;
  return { order: { ...order, fingerprint }, filter: { condition, key } };
}

/** A replacer for `JSON.stringify` that sorts the fields of objects. */
function sortFields(_name: string, value: unknown): unknown {
  return isRecord(value)
    ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
    : value;
}

/**
 * Translates `orderBy` into an order, undefined if it names no field. Ties are broken by id in the direction of the last
 * field, so that an index on one field and the id has the rows in this order.
 * @throws a client error about the argument `orderBy`.
 */
function readOrder(
  type: FilterableType,
  orderBy: OrderInput | readonly OrderInput[] | null | undefined,
): Order | undefined {
  const keys = [orderBy ?? []].flat();
  const last = keys.at(-1);
  if (!last) return undefined;
  if (keys.length > bounds.keys)
    throw argumentError('orderBy', `orderBy must have at most ${bounds.keys} fields`);
  if (new Set(keys.map(({ field }) => field)).size < keys.length)
    throw argumentError('orderBy', 'orderBy must name each field once');
  return { keys: keys.map((each) => keyOf(type, each)), isDescending: last.direction === 'DESC' };
}

function keyOf(type: FilterableType, { field: name, direction }: OrderInput): OrderKey {
  const field = filterFields(type).find((each) => isOrderable(type, each) && orderName(each) === name);
  const column = field && orderColumn(field);
  // The input type has only the fields of this list.
  if (column === undefined) throw new Error(`${type} cannot be ordered by ${name}`);
  return orderKey(modelOf(type), column, direction === 'DESC');
}
