/**
 * Devices of all kinds as one list: most recently visited first, never visited last, ties by kind and then by id, highest
 * first. Each kind has a table of its own, so a page is merged from a page of each table.
 */

import type { GraphQLResolveInfo } from 'graphql';
import { type DeviceType, deviceTypes } from '../../database/models.ts';
import type { Context } from '../context.ts';
import { type ListArguments, readList } from '../filtering/request.ts';
import { readNamedCursor, writeCursor } from './cursors.ts';
import { type CursorValues, type KeyValue, type Order, orderBy, rowsAfter, rowsBefore } from './keyset.ts';
import { connect, orderColumns, readPageRequest } from './pagination.ts';
import { placeOf } from './place.ts';
import { countVisible, type Row, readRows, slots } from './rows.ts';
import { type FieldRequirements, nodePaths } from './selection.ts';

type Device = Row<DeviceType> & { readonly __typename: DeviceType };

const needs: FieldRequirements = { readsDatabase: true };

/** The viewer's devices as a connection. It does not depend on the parent, so an operation reads it once. */
export const deviceList = {
  extensions: { needs },
  async resolve(_parent: unknown, args: ListArguments, context: Context, info: GraphQLResolveInfo) {
    const { order, filter } = readList('Device', args, context.viewer);
    const request = readPageRequest(args);
    const { size, offset, isBackward } = request;
    const [after, before] = (['after', 'before'] as const).map((argument) => {
      const cursor = request[argument];
      return cursor === undefined ? undefined : readNamedCursor(deviceTypes, order, argument, cursor);
    });
    // All skipped rows may be of one kind.
    const take = offset + size + 1;
    const readKind = async (kind: DeviceType): Promise<Device[]> => {
      const conditions = [
        ...(filter.condition ? [filter.condition] : []),
        ...(after ? [rowsAfter(order, valuesAmong(kind, after))] : []),
        ...(before ? [rowsBefore(order, valuesAmong(kind, before))] : []),
      ];
      const isDefault = order.fingerprint === undefined && conditions.length === 0;
      const variant = isDefault ? `${kind} ${isBackward}` : undefined;
      const wanted = () => ({
        ...(conditions.length > 0 && { where: { AND: conditions } }),
        orderBy: orderBy(order, isBackward),
        take: slots.take,
        plansEachTime: order.fingerprint !== undefined,
        columns: orderColumns(order),
        paths: nodePaths,
        typeName: kind,
      });
      const rows = await readRows(kind, variant, wanted, { take }, context, info);
      return rows.map((row) => ({ ...row, __typename: kind }));
    };
    const rows = await context.loaders.once(placeOf(info), async () => {
      const parts = await Promise.all(deviceTypes.map(readKind));
      const compare = comparerFor(order);
      const merged = parts.flat().sort(isBackward ? (a, b) => compare(b, a) : compare);
      return merged.slice(offset, take);
    });
    const cursorOf = (row: Device) => writeCursor(order, row, row.__typename);
    return connect(rows, request, cursorOf, async () => {
      const counts = await Promise.all(deviceTypes.map((kind) => countVisible(kind, filter, context)));
      return counts.reduce((total, count) => total + count, 0);
    });
  },
};

/** Compares devices as the statement of each kind does, and breaks ties by kind and then by id. */
function comparerFor({ keys, isDescending }: Order): (a: Device, b: Device) => number {
  const turned = isDescending ? 1 : -1;
  return (a, b) => {
    for (const { column, isDescending: isDown } of keys) {
      // The columns of the order are selected with each row.
      const [one, other] = [a, b].map((row) => (row as unknown as Record<string, KeyValue>)[column] ?? null);
      const compared = compareValues(one ?? null, other ?? null, isDown);
      if (compared !== 0) return compared;
    }
    return turned * (deviceTypes.indexOf(a.__typename) - deviceTypes.indexOf(b.__typename) || b.id - a.id);
  };
}

/** Compares times and numbers, null last. A time that a `Date` cannot represent is a number. */
function compareValues(a: KeyValue, b: KeyValue, isDescending: boolean): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  // Not by their difference, which is NaN for two infinite times.
  const rising = Number(Number(a) > Number(b)) - Number(Number(a) < Number(b));
  return isDescending ? -rising : rising;
}

/** What a cursor of the whole list says of the rows of one kind. */
function valuesAmong(
  kind: DeviceType,
  { kind: its, values, id }: CursorValues & { readonly kind: DeviceType },
): CursorValues {
  if (kind === its) return { values, id };
  // Ties are broken by kind and then by id in one direction, as if an earlier kind had higher ids than any later one.
  const isEarlier = deviceTypes.indexOf(kind) < deviceTypes.indexOf(its);
  return { values, id: isEarlier ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY };
}
