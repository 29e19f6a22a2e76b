/**
 * Devices of every kind as one list: most recently visited first, never visited last, equal ones by their kind and then
 * by id, newest first. Each kind is a table of its own, so a page is what comes first in the pages of all three.
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
import type { Needs } from './selection.ts';

/** In the order of devices that are equal otherwise. */
const kinds = ['DttDevice', 'LkbxDevice', 'OssmDevice'] as const;
type Kind = (typeof kinds)[number];

type Device = Row<Kind> & { readonly __typename: Kind };

const needs: Needs = { readsDatabase: true };

/** The viewer's devices as a connection. It does not depend on the parent, so it is read once per operation. */
export const deviceList = {
  extensions: { needs },
  async resolve(_parent: unknown, args: ListArguments, context: Context, info: GraphQLResolveInfo) {
    // All kinds have the same order of their own.
    const { order, filter } = readList('Device', listOrders.DttDevice, args, context.viewer);
    const request = readPageRequest(args);
    const bounds = readBounds(order, request);
    const conditions = (kind: Kind) =>
      allOf([...(filter.condition ? [filter.condition] : []), ...bounds(kind)]);
    const rows = await context.loaders.once(fieldSiteOf(info).key, () =>
      readPage(request, order, conditions, context, info),
    );
    return Object.assign(
      connect(rows, request, (row) => writeCursor(order, row, row.__typename)),
      {
        async totalCount() {
          const counts = await Promise.all(kinds.map((kind) => countVisible(kind, filter, context)));
          return counts.reduce((total, count) => total + count, 0);
        },
      },
    );
  },
};

const allOf = (conditions: readonly object[]) => (conditions.length > 0 ? { AND: conditions } : undefined);

/** @returns the conditions that cursors put on the rows of a kind. */
function readBounds(order: CursorOrder, { after, before }: PageRequest): (kind: Kind) => object[] {
  const first = after === undefined ? undefined : readNamedCursor(kinds, order, 'after', after);
  const last = before === undefined ? undefined : readNamedCursor(kinds, order, 'before', before);
  return (kind) => [
    ...(first ? [rowsAfter(order, positionAmong(kind, first))] : []),
    ...(last ? [rowsBefore(order, positionAmong(kind, last))] : []),
  ];
}

/** The rows of a page in the order in which the page is read, and one more if the list goes on. */
async function readPage(
  { size, offset, isBackward }: PageRequest,
  order: Order,
  conditions: (kind: Kind) => object | undefined,
  context: Context,
  info: GraphQLResolveInfo,
): Promise<Device[]> {
  // Those that are skipped may all be of one kind.
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

/** Compares as each kind's statement does, and devices that are equal by their kind and then by id. */
function comparerFor({ keys, isDescending }: Order): (a: Device, b: Device) => number {
  const turned = isDescending ? 1 : -1;
  return (a, b) => {
    for (const { column, isDescending: isDown } of keys) {
      // The columns of the order are read with each row.
      const [one, other] = [a, b].map((row) => (row as unknown as Record<string, KeyValue>)[column] ?? null);
      const compared = compareValues(one ?? null, other ?? null, isDown);
      if (compared !== 0) return compared;
    }
    return turned * (kinds.indexOf(a.__typename) - kinds.indexOf(b.__typename) || b.id - a.id);
  };
}

/** Times and numbers; an infinite time, of which there is no `Date`, is a number. What is null comes last. */
function compareValues(a: KeyValue, b: KeyValue, isDescending: boolean): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  // Not their difference, which is no number for two infinite times.
  const rising = Number(Number(a) > Number(b)) - Number(Number(a) < Number(b));
  return isDescending ? -rising : rising;
}

/** Where a position of the whole list stands among the rows of one kind. */
function positionAmong(kind: Kind, { kind: its, values, id }: NamedPosition<Kind>): Position {
  if (kind === its) return { values, id };
  // Ties come by kind and then by id, both in one direction: as though an earlier kind had all the higher ids.
  const isEarlier = kinds.indexOf(kind) < kinds.indexOf(its);
  return { values, id: isEarlier ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY };
}
