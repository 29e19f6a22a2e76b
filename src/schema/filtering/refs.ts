/** References to the input types of filters and orders. `types.ts` implements them once all types have their fields. */

import { builder } from '../builder.ts';
import type { ListedType } from './filterable.ts';

/** A filter as a client writes it. `condition.ts` reads its fields by their names. */
export interface FilterInput {
  readonly [field: string]: unknown;
}

export interface OrderInput {
  /** The name that `orderName` gives the field. */
  readonly field: string;
  readonly direction: 'ASC' | 'DESC';
}

const newFilter = (type: ListedType) => builder.inputRef<FilterInput>(`${type}Filter`);
const newOrder = (type: ListedType) => builder.inputRef<OrderInput>(`${type}Order`);

const filters = new Map<ListedType, ReturnType<typeof newFilter>>();
const orders = new Map<ListedType, ReturnType<typeof newOrder>>();

/** The input type of `where`. */
export function filterRef(type: ListedType): ReturnType<typeof newFilter> {
  const ref = filters.get(type) ?? newFilter(type);
  filters.set(type, ref);
  return ref;
}

/** The input type of the items of `orderBy`. */
export function orderRef(type: ListedType): ReturnType<typeof newOrder> {
  const ref = orders.get(type) ?? newOrder(type);
  orders.set(type, ref);
  return ref;
}
