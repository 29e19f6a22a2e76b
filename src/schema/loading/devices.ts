/**
 * Devices of all kinds as one list: most recently visited first, never visited last, ties by kind and then by id, highest
 * first. Each kind has a table of its own, so a page is merged from a page of each table.
 */

import type { GraphQLResolveInfo } from 'graphql';
import type { Context } from '../context.ts';
import { type ListArguments, readList } from '../filtering/request.ts';
import { type CursorOrder, type NamedPosition, readNamedCursor, writeCursor } from './cursors.ts';
import { fieldSiteOf } from './fieldSite.ts';
import { type KeyValue, type Order, type Position, rowsAfter, rowsBefore } from './keyset.ts';
import { listOrders } from './listOrders.ts';
import { connect, type PageRequest, readPageRequest } from './pagination.ts';
import { countVisible, type Row, readPart } from './rows.ts';
import type { FieldRequirements } from './selection.ts';

/** In the order that breaks ties between devices of different kinds. */
const kinds = ['DttDevice', 'LkbxDevice', 'OssmDevice'] as const;
type Kind = (typeof kinds)[number];

type Device = Row<Kind> & { readonly __typename: Kind };

const needs: FieldRequirements = { readsDatabase: true };

/** The viewer's devices as a connection. It does not depend on the parent, so an operation reads it once. */
export const deviceList = {
  extensions: { needs },
  async resolve(_parent: unknown, args: ListArguments, context: Context, info: GraphQLResolveInfo) {
    // The lists of all kinds have the same default order.
    const { order, filter } = readList('Device', listOrders.DttDevice, args, context.viewer);
    const request = readPageRequest(args);
    const bounds = readBounds(order, request);
    const conditions = (kind: Kind) =>
      allOf([...(filter.condition ? [filter.condition] : []), ...bounds(kind)]);
    const rows = await context.loaders.once(fieldSiteOf(info).key, () =>
      readPage(request, order, conditions, context, info),
    );
    const cursorOf = (row: Device) => writeCursor(order, row, row.__typename);
    return connect(rows, request, cursorOf, async () => {
      const counts = await Promise.all(kinds.map((kind) => countVisible(kind, filter, context)));
      return counts.reduce((total, count) => total + count, 0);
    });
  },
};

const allOf = (conditions: readonly object[]) => (conditions.length > 0 ? { AND: conditions } : undefined);

/** @returns a function for the conditions that the cursors put on the rows of a kind. */
function readBounds(order: CursorOrder, { after, before }: PageRequest): (kind: Kind) => object[] {
  const first = after === undefined ? undefined : readNamedCursor(kinds, order, 'after', after);
  const last = before === undefined ? undefined : readNamedCursor(kinds, order, 'before', before);
  return (kind) => [
    ...(first ? [rowsAfter(order, positionAmong(kind, first))] : []),
    ...(last ? [rowsBefore(order, positionAmong(kind, last))] : []),
  ];
}

/** Reads the rows of a page, from its start or backward from its end, and one more if the list continues. */
async function readPage(
  { size, offset, isBackward }: PageRequest,
  order: Order,
  conditions: (kind: Kind) => object | undefined,
  context: Context,
  info: GraphQLResolveInfo,
): Promise<Device[]> {
  // All skipped rows may be of one kind.
  const take = offset + size + 1;
  const parts = await Promise.all(
    kinds.map(async (kind): Promise<Device[]> => {
      const part = { where: conditions(kind), order, take, isBackward };
      const rows = await readPart(kind, part, context, info);
      return rows.map((row) => ({ ...row, __typename: kind }));
    }),
  );
  const compare = comparerFor(order);
  const merged = parts.flat().sort(isBackward ? (a, b) => compare(b, a) : compare);
  return merged.slice(offset, take);
}

/** Compares devices as the statement of each kind does, and breaks ties by kind and then by id. */
function comparerFor({ keys, isDescending }: Order): (a: Device, b: Device) => number {
  const turned = isDescending ? 1 : -1;
  return (a, b) => {
    for (const { column, isDescending: isDown } of keys) {
      // `readPart` selects the columns of the order with each row.
      const [one, other] = [a, b].map((row) => (row as unknown as Record<string, KeyValue>)[column] ?? null);
      const compared = compareValues(one ?? null, other ?? null, isDown);
      if (compared !== 0) return compared;
    }
    return turned * (kinds.indexOf(a.__typename) - kinds.indexOf(b.__typename) || b.id - a.id);
  };
}

/** Compares times and numbers, null last. A time that a `Date` cannot represent is a number. */
function compareValues(a: KeyValue, b: KeyValue, isDescending: boolean): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  // Not by their difference, which is NaN for two infinite times.
  const rising = Number(Number(a) > Number(b)) - Number(Number(a) < Number(b));
  return isDescending ? -rising : rising;
}

/** Translates a position in the whole list to a position among the rows of one kind. */
function positionAmong(kind: Kind, { kind: its, values, id }: NamedPosition<Kind>): Position {
  if (kind === its) return { values, id };
  // Ties are broken by kind and then by id in one direction, as if an earlier kind had higher ids than any later one.
  const isEarlier = kinds.indexOf(kind) < kinds.indexOf(its);
  return { values, id: isEarlier ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY };
}
