/**
 * Devices of every kind as one list: most recently visited first, never visited last, equal ones by their kind and then
 * by id, newest first. Each kind is a table of its own, so a page is what comes first in the pages of all three.
 */

import type { GraphQLResolveInfo } from 'graphql';
import type { Context } from '../context.ts';
import { placeOf } from './loaders.ts';
import {
  ahead,
  behind,
  type Connection,
  connect,
  decode,
  encode,
  foreignCursor,
  type PageArguments,
  type PageRequest,
  type Position,
  readPageRequest,
  readPosition,
  writePosition,
} from './pagination.ts';
import { countVisible, orders, type Row, readPart } from './reads.ts';
import type { Needs } from './selection.ts';

/** In the order of devices that are equal otherwise. */
const kinds = ['DttDevice', 'LkbxDevice', 'OssmDevice'] as const;
type Kind = (typeof kinds)[number];

/** All kinds have the same order of their own. */
const order = orders.DttDevice;

type Device = Row<Kind> & { readonly __typename: Kind };

interface MixedPosition extends Position {
  readonly kind: Kind;
}

const needs: Needs = { asksAgain: true };

/** The viewer's devices as a connection. It does not depend on the parent, so it is read once per operation. */
export const deviceList = {
  extensions: { needs },
  async resolve(_parent: unknown, args: PageArguments, context: Context, info: GraphQLResolveInfo) {
    const request = readPageRequest(args);
    const bounds = readBounds(request);
    const rows = await context.loaders.once(placeOf(info), () => readPage(request, bounds, context, info));
    return {
      ...connectRows(rows, request),
      async totalCount() {
        const counts = await Promise.all(kinds.map((kind) => countVisible(kind, context)));
        return counts.reduce((total, count) => total + count, 0);
      },
    };
  },
};

/** @returns the conditions that cursors put on the rows of a kind. */
function readBounds({ after, before }: PageRequest): (kind: Kind) => object | undefined {
  const first = after === undefined ? undefined : readCursor('after', after);
  const last = before === undefined ? undefined : readCursor('before', before);
  return (kind) => {
    const conditions = [
      ...(first ? [behind(order, positionAmong(kind, first))] : []),
      ...(last ? [ahead(order, positionAmong(kind, last))] : []),
    ];
    return conditions.length > 0 ? { AND: conditions } : undefined;
  };
}

/** The rows of a page in the order in which the page is read, and one more if the list goes on. */
async function readPage(
  { size, offset, isBackward }: PageRequest,
  bounds: (kind: Kind) => object | undefined,
  context: Context,
  info: GraphQLResolveInfo,
): Promise<Device[]> {
  // Those that are skipped may all be of one kind.
  const take = offset + size + 1;
  const parts = await Promise.all(
    kinds.map(async (kind): Promise<Device[]> => {
      const rows = await readPart(kind, { where: bounds(kind), take, isBackward }, context, info);
      return rows.map((row) => ({ ...row, __typename: kind }));
    }),
  );
  const merged = parts.flat().sort(isBackward ? (a, b) => compare(b, a) : compare);
  return merged.slice(offset, take);
}

function compare(a: Device, b: Device): number {
  return (
    compareVisits(a.lastVisited, b.lastVisited) ||
    kinds.indexOf(a.__typename) - kinds.indexOf(b.__typename) ||
    b.id - a.id
  );
}

/** An infinite time, of which there is no `Date`, is a number. */
function compareVisits(a: Date | number | null, b: Date | number | null): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  // Not their difference, which is no number for two infinite times.
  return Number(Number(a) < Number(b)) - Number(Number(a) > Number(b));
}

const connectRows = (rows: readonly Device[], request: PageRequest): Connection<Device> =>
  connect(rows, request, (row) => encode(`${row.__typename}:${writePosition(order, row)}`));

/** Where a position of the whole list stands among the rows of one kind. */
function positionAmong(kind: Kind, { kind: its, time, id }: MixedPosition): Position {
  if (kind === its) return { time, id };
  // Of the same time, all rows of an earlier kind come before it, and all of a later kind behind it.
  const isEarlier = kinds.indexOf(kind) < kinds.indexOf(its);
  return { time, id: isEarlier ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY };
}

function readCursor(argument: string, cursor: string): MixedPosition {
  const [, name, position = ''] = /^(\w+):(.*)$/.exec(decode(cursor)) ?? [];
  const kind = kinds.find((known) => known === name);
  const read = readPosition(order, position);
  return kind && read ? { ...read, kind } : foreignCursor(argument);
}
