/** What the list of programs is narrowed to and ordered by, as its address says it: `?show=owned&search=warm&order=name`. */

import type { DttTemplateFilter, DttTemplateOrder } from '../../generated/graphql.ts';
import type { Address } from '../parts/address.ts';

interface Choice<Value> {
  /** As it is shown to choose from. */
  readonly label: string;
  readonly value: Value;
}

/** The first of each stands for nothing chosen, and is not in the address. */
export const shows: Readonly<Record<string, Choice<DttTemplateFilter>>> = {
  all: { label: 'All', value: {} },
  owned: { label: 'Owned', value: { isImported: { eq: false } } },
  imported: { label: 'Imported', value: { isImported: { eq: true } } },
  public: { label: 'Public', value: { isPublic: { eq: true } } },
  active: { label: 'Active', value: { isActive: { eq: true } } },
};
export const orders: Readonly<Record<string, Choice<DttTemplateOrder>>> = {
  newest: { label: 'Newest first', value: { field: 'CREATED_AT', direction: 'DESC' } },
  edited: { label: 'Last edited first', value: { field: 'UPDATED_AT', direction: 'DESC' } },
  name: { label: 'Name, A to Z', value: { field: 'NAME', direction: 'ASC' } },
};

export interface Filters {
  readonly show: string;
  readonly search: string;
  readonly order: string;
}

/** What the address says, as far as it can be meant. */
export function filtersOf({ show = '', search = '', order = '' }: Address['query']): Filters {
  return {
    show: Object.hasOwn(shows, show) ? show : 'all',
    search: search.trim(),
    order: Object.hasOwn(orders, order) ? order : 'newest',
  };
}

/** The arguments of the list for them. */
export function argumentsFor({ show, search, order }: Filters) {
  const ordered = orders[order];
  return {
    where: { ...shows[show]?.value, ...(search !== '' && { name: { contains: search } }) },
    orderBy: ordered ? [ordered.value] : [],
  };
}
