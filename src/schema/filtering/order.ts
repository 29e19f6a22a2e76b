/** Makes of a client's `orderBy` the order of a list. */

import { fieldOf } from '../../database/reader/models.ts';
import { argumentError } from '../../errors.ts';
import type { Order, OrderKey } from '../loading/keyset.ts';
import { bounds } from './bounds.ts';
import { filterFields, isOrderable, type ListedType, modelOf, orderColumn, orderName } from './filterable.ts';
import type { OrderInput } from './refs.ts';

/**
 * The order that a list is asked for in, undefined where it says nothing. Ties are broken by id in the direction of the last
 * field, so that an index on one field and the id has the rows in this order.
 * @throws a client error about the argument `orderBy`.
 */
export function readOrder(
  type: ListedType,
  orderBy: OrderInput | readonly OrderInput[] | null | undefined,
): Order | undefined {
  const wanted = [orderBy ?? []].flat();
  const last = wanted.at(-1);
  if (!last) return undefined;
  if (wanted.length > bounds.keys)
    throw argumentError('orderBy', `orderBy must have at most ${bounds.keys} fields`);
  if (new Set(wanted.map(({ field }) => field)).size < wanted.length)
    throw argumentError('orderBy', 'orderBy must name each field once');
  return { keys: wanted.map((each) => keyOf(type, each)), isDescending: last.direction === 'DESC' };
}

function keyOf(type: ListedType, { field: name, direction }: OrderInput): OrderKey {
  const field = filterFields(type).find((each) => isOrderable(type, each) && orderName(each) === name);
  const column = field && orderColumn(field);
  // The schema has the fields of this very list, and no others.
  if (column === undefined) throw new Error(`${type} cannot be ordered by ${name}`);
  const { type: its, isRequired } = fieldOf(modelOf(type), column);
  return { column, type: its, isNullable: !isRequired, isDescending: direction === 'DESC' };
}
