/** The input types of filters and orders by the name of what is listed, before they are made (`types.ts`). */

import { builder } from '../builder.ts';
import type { ListedType } from './filterable.ts';

/** A condition as a client writes it: `condition.ts` looks at its fields by their names. */
export interface FilterInput {
  readonly [field: string]: unknown;
}

export interface OrderInput {
  /** A field, as `orderName` calls it. */
  readonly field: string;
  readonly direction: 'ASC' | 'DESC';
}

const newFilter = (type: ListedType) => builder.inputRef<FilterInput>(`${type}Filter`);
const newOrder = (type: ListedType) => builder.inputRef<OrderInput>(`${type}Order`);

const filters = new Map<ListedType, ReturnType<typeof newFilter>>();
const orders = new Map<ListedType, ReturnType<typeof newOrder>>();

/** The type of `where`. */
export function filterRef(type: ListedType): ReturnType<typeof newFilter> {
  const ref = filters.get(type) ?? newFilter(type);
  filters.set(type, ref);
  return ref;
}

/** The type of the items of `orderBy`. */
export function orderRef(type: ListedType): ReturnType<typeof newOrder> {
  const ref = orders.get(type) ?? newOrder(type);
  orders.set(type, ref);
  return ref;
}
