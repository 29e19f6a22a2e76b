/** The order of a list, and what comes before and behind a place in it. */

import type { RowOrder } from '../../database/reader/query.ts';

/** A column that a list is ordered by. Rows without a value come last, in either direction. */
export interface OrderKey {
  readonly column: string;
  /** As the data model has it. */
  readonly type: string;
  readonly isNullable: boolean;
  readonly isDescending: boolean;
}

/** By the keys, one after the other; ties are broken by id. */
export interface Order {
  readonly keys: readonly OrderKey[];
  /** Whether of rows that are equal otherwise the one with the highest id comes first. */
  readonly isDescending: boolean;
}

/** Those that came last first. */
export const newestId: Order = { keys: [], isDescending: true };

/** Newest first by a time. */
export const newest = (column: string, isNullable = false): Order => ({
  keys: [{ column, type: 'DateTime', isNullable, isDescending: true }],
  isDescending: true,
});

/** The value of a key. Infinite times, of which there is no `Date`, are numbers. */
export type KeyValue = Date | number | string | boolean | null;

/** A place in a list: the values that the list is ordered by. */
export interface Position {
  /** One for each key of the order. */
  readonly values: readonly KeyValue[];
  /** Infinite for a place before or behind all rows that are equal otherwise. */
  readonly id: number;
}

/** The order as a query has it, or the reverse of it. */
export function orderBy({ keys, isDescending }: Order, reverse = false): RowOrder[] {
  const sortOf = (descending: boolean) => (descending === reverse ? 'asc' : 'desc');
  return [
    ...keys.map((key): RowOrder => {
      const sort = sortOf(key.isDescending);
      return { [key.column]: key.isNullable ? { sort, nulls: reverse ? 'first' : 'last' } : sort };
    }),
    { id: sortOf(isDescending) },
  ];
}

/** Rows that come after the position. The bound on a key alone, though implied, is what an index can use. */
export function rowsAfter({ keys, isDescending }: Order, { values, id }: Position): object {
  return keys.reduceRight<object>(
    (equalRows, { column, isNullable, isDescending: isDown }, index) => {
      const value = values[index] ?? null;
      if (value === null) return { AND: [{ [column]: null }, equalRows] };
      const [strictly, atMost] = isDown ? (['lt', 'lte'] as const) : (['gt', 'gte'] as const);
      const further = { [column]: { [atMost]: value }, OR: [{ [column]: { [strictly]: value } }, equalRows] };
      return isNullable ? { OR: [further, { [column]: null }] } : further;
    },
    { id: isDescending ? lowerThan(id) : higherThan(id) },
  );
}

/** Rows that come before the position. */
export function rowsBefore({ keys, isDescending }: Order, { values, id }: Position): object {
  return keys.reduceRight<object>(
    (equalRows, { column, isDescending: isDown }, index) => {
      const value = values[index] ?? null;
      if (value === null)
        return { OR: [{ [column]: { not: null } }, { AND: [{ [column]: null }, equalRows] }] };
      const [strictly, atLeast] = isDown ? (['gt', 'gte'] as const) : (['lt', 'lte'] as const);
      return { [column]: { [atLeast]: value }, OR: [{ [column]: { [strictly]: value } }, equalRows] };
    },
    { id: isDescending ? higherThan(id) : lowerThan(id) },
  );
}

/** What holds of all ids, and of none: no integer can be compared with an infinite number. */
const everyId = { not: null };
const noId = { in: [] };

function lowerThan(id: number): object {
  if (Number.isFinite(id)) return { lt: id };
  return id > 0 ? everyId : noId;
}

function higherThan(id: number): object {
  if (Number.isFinite(id)) return { gt: id };
  return id < 0 ? everyId : noId;
}
