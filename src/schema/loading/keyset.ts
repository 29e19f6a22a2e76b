/** The order of a list, and conditions on the rows before and after those of a cursor (keyset pagination). */

import { type ListedType, models } from '../../database/models.ts';
import { fieldOf } from '../../database/reader/dataModel.ts';
import type { ModelName, RowOrder } from '../../database/reader/query.ts';

/** A column that a list is ordered by. Rows without a value come last in both directions. */
export interface OrderKey {
  readonly column: string;
  /** The type of the column in the data model. */
  readonly type: string;
  readonly isNullable: boolean;
  readonly isDescending: boolean;
}

/** Rows are compared by the keys in turn; ties are broken by id. */
export interface Order {
  readonly keys: readonly OrderKey[];
  /** Whether ties are broken in descending order of ids. */
  readonly isDescending: boolean;
}

/** The default order of the lists of a type: newest first by a time, or highest id first. */
export function defaultOrder(type: ListedType): Order {
  const column = models[type].order;
  const order = defaultOrders.get(type) ?? {
    keys: column === 'id' ? [] : [orderKey(type, column, true)],
    isDescending: true,
  };
  defaultOrders.set(type, order);
  return order;
}

const defaultOrders = new Map<ListedType, Order>();

export function orderKey(model: ModelName, column: string, isDescending: boolean): OrderKey {
  const { type, isRequired } = fieldOf(model, column);
  return { column, type, isNullable: !isRequired, isDescending };
}

/** The value of a key. An infinite time is a number, since a `Date` cannot represent it. */
export type KeyValue = Date | number | string | boolean | null;

/** What a cursor says of its row: the values that the list is ordered by. */
export interface CursorValues {
  /** One for each key of the order. */
  readonly values: readonly KeyValue[];
  /** Infinite for a cursor before or after all rows with the same values. */
  readonly id: number;
}

/** The `orderBy` of a query for the order, or for its reverse. */
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

/** The condition for rows after a cursor. The bound on a single key is redundant, but an index can use it. */
export function rowsAfter({ keys, isDescending }: Order, { values, id }: CursorValues): object {
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

/** The condition for rows before a cursor. */
export function rowsBefore({ keys, isDescending }: Order, { values, id }: CursorValues): object {
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

/** Conditions that every id meets, and that none does: PostgreSQL cannot compare an integer with an infinite number. */
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
