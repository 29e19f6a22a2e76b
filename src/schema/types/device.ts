/**
 * The interface of the three kinds of devices, and devices of all kinds as one list: most recently visited first, never visited last,
 * ties by kind and then by id, highest first. Each kind has a table of its own, so a page is merged from a page of each table.
 */

import type { GraphQLResolveInfo } from 'graphql';
import { type DeviceType, deviceTypes } from '../../database/models.ts';
import { builder } from '../builder.ts';
import { type Context, placeOf } from '../context.ts';
import { addViewerList, columnFields, databaseId, nullIfUnknown } from '../fields.ts';
import { type ListArguments, readListArguments } from '../filter.ts';
import {
  Connection,
  checkPage,
  type KeyValue,
  type Order,
  planPage,
  writeCursor,
} from '../loading/pagination.ts';
import {
  type Call,
  countVisible,
  needing,
  nodePaths,
  type Row,
  type RowQuery,
  readRows,
} from '../loading/rows.ts';
import { ownerField } from './user.ts';

type ListedDevice = Row<DeviceType> & { readonly __typename: DeviceType };

/** The viewer's devices as a connection. It does not depend on the parent, so an operation reads it once. */
const deviceList = {
  extensions: needing({}),
  async resolve(_parent: unknown, args: ListArguments, context: Context, info: GraphQLResolveInfo) {
    const { order, filter } = readListArguments('Device', args, context.viewer);
    const request = checkPage(args);
    const { size, offset, isBackward } = request;
    const parts = deviceTypes.map((kind) => ({ kind, page: planPage(order, args, filter.condition, kind) }));
    const rows = await context.loaders.once(placeOf(info), async () => {
      const read = await Promise.all(parts.map((part) => readPart(part, { context, info })));
      const compare = comparerFor(order);
      const merged = read.flat().sort(isBackward ? (a, b) => compare(b, a) : compare);
      return merged.slice(offset, offset + size + 1);
    });
    const cursorOf = (row: ListedDevice) => writeCursor(order, row, row.__typename);
    return new Connection(rows, request, cursorOf, async () => {
      const counts = await Promise.all(deviceTypes.map((kind) => countVisible(kind, filter, context)));
      return counts.reduce((total, count) => total + count, 0);
    });
  },
};

async function readPart(
  { kind, page }: { kind: DeviceType; page: RowQuery },
  call: Call,
): Promise<ListedDevice[]> {
  const variant = page.variant && `${kind} ${page.variant}`;
  const wanted = () => ({ ...page.rows(), paths: nodePaths, typeName: kind });
  const rows = await readRows(kind, { ...page, variant, rows: wanted }, call);
  return rows.map((row) => ({ ...row, __typename: kind }));
}

/** Compares devices as the statement of each kind does, and breaks ties by kind and then by id. */
function comparerFor({ keys, isDescending }: Order): (a: ListedDevice, b: ListedDevice) => number {
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

export const Device = builder.interfaceRef<Pick<Row<DeviceType>, 'id' | 'ownerId'>>('Device').implement({
  description: 'One of your devices, whatever its kind.',
  interfaces: [builder.nodeInterfaceRef()],
  fields: (t) => ({
    // The columns are the same in each kind.
    ...columnFields(t, 'DttDevice', {
      databaseId,
      bubbleId: 'Public identifier.',
      macAddress: nullIfUnknown('Hardware address, such as `02:00:00:00:00:01`.'),
      ownerId: 'Integer id of its owner.',
      lastVisitedAt: {
        column: 'lastVisited',
        description: 'When it last called in, null if it never did.',
      },
    }),
    owner: t.field(ownerField),
  }),
});

addViewerList(
  'devices',
  'Device',
  Device,
  'Your devices of every kind, most recently visited first, never visited last.',
  deviceList,
);
