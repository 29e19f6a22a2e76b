/** Translates a client's `orderBy` into the order of a list. */

import { fieldOf } from '../../database/reader/models.ts';
import { argumentError } from '../../errors.ts';
import type { Order, OrderKey } from '../loading/keyset.ts';
import { bounds } from './bounds.ts';
import { filterFields, isOrderable, type ListedType, modelOf, orderColumn, orderName } from './filterable.ts';
import type { OrderInput } from './refs.ts';

/**
 * Translates `orderBy` into an order, undefined if it names no field. Ties are broken by id in the direction of the last
 * field, so that an index on one field and the id has the rows in this order.
 * @throws a client error about the argument `orderBy`.
 */
export function readOrder(
  type: ListedType,
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

function keyOf(type: ListedType, { field: name, direction }: OrderInput): OrderKey {
  const field = filterFields(type).find((each) => isOrderable(type, each) && orderName(each) === name);
  const column = field && orderColumn(field);
  // The input type has only the fields of this list.
  if (column === undefined) throw new Error(`${type} cannot be ordered by ${name}`);
  const { type: columnType, isRequired } = fieldOf(modelOf(type), column);
  return { column, type: columnType, isNullable: !isRequired, isDescending: direction === 'DESC' };
}
