/** References to the input types of filters and orders. `types.ts` implements them once all types have their fields. */

import { builder } from '../builder.ts';
import type { FilterableType } from './fields.ts';
import type { FilterInput } from './filter.ts';
import type { OrderInput } from './request.ts';

/** The input type of `where`. */
export const filterRef = onceForType((type) => builder.inputRef<FilterInput>(`${type}Filter`));

/** The input type of the items of `orderBy`. */
export const orderRef = onceForType((type) => builder.inputRef<OrderInput>(`${type}Order`));

function onceForType<Ref>(create: (type: FilterableType) => Ref): (type: FilterableType) => Ref {
  const refs = new Map<FilterableType, Ref>();
  return (type) => {
    const ref = refs.get(type) ?? create(type);
    refs.set(type, ref);
    return ref;
  };
}
