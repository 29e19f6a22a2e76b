/** The filter and the order of the list of programs, as parameters of the address: `?show=owned&search=warm&order=name`. */

import type { DttTemplateFilter, DttTemplateOrder } from '../../generated/graphql.ts';
import type { Address } from '../parts/address.ts';

interface Option<Value> {
  /** The text of the option. */
  readonly label: string;
  readonly value: Value;
}

/** The first option is the default, which is not in the address. The same holds for `orders`. */
export const shows: Readonly<Record<string, Option<DttTemplateFilter>>> = {
  all: { label: 'All', value: {} },
  owned: { label: 'Yours', value: { isImported: { eq: false } } },
  imported: { label: 'Imported', value: { isImported: { eq: true } } },
  public: { label: 'Public', value: { isPublic: { eq: true } } },
  active: { label: 'Active', value: { isActive: { eq: true } } },
};
export const orders: Readonly<Record<string, Option<DttTemplateOrder>>> = {
  newest: { label: 'Newest first', value: { field: 'CREATED_AT', direction: 'DESC' } },
  edited: { label: 'Last edited first', value: { field: 'UPDATED_AT', direction: 'DESC' } },
  name: { label: 'Name, A to Z', value: { field: 'NAME', direction: 'ASC' } },
};

export interface Filters {
  readonly show: string;
  readonly search: string;
  readonly order: string;
}

/** Reads the parameters of the address. Values that cannot be right are left out. */
export function filtersOf({ show = '', search = '', order = '' }: Address['query']): Filters {
  return {
    show: Object.hasOwn(shows, show) ? show : 'all',
    search: search.trim(),
    order: Object.hasOwn(orders, order) ? order : 'newest',
  };
}

/** The arguments of the list's field for these filters. */
export function argumentsFor({ show, search, order }: Filters) {
  const ordered = orders[order];
  return {
    where: { ...shows[show]?.value, ...(search !== '' && { name: { contains: search } }) },
    orderBy: ordered ? [ordered.value] : [],
  };
}
