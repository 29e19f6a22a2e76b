/** Devices of every kind as one list: compares random pages with sorting and slicing in plain code. */

import fc from 'fast-check';
import { execute, parse } from 'graphql';
import { expect, it } from 'vitest';
import { createContext } from '../../../src/schema/context.ts';
import { prepare } from '../../../src/schema/operation.ts';
import { schema } from '../../../src/schema/schema.ts';
import { databaseWith } from '../../support/setUp.ts';

const kinds = ['DttDevice', 'LkbxDevice', 'OssmDevice'] as const;
type Kind = (typeof kinds)[number];

/** Times of visits: none, several times of which some are equal, and the infinite ones. */
const times = [
  null,
  null,
  'infinity',
  '-infinity',
  '2026-01-01Z',
  '2026-01-01Z',
  '2026-01-02Z',
  '1969-12-31Z',
];

interface Place {
  readonly kind: Kind;
  readonly id: number;
  readonly time: number | null;
}

const timeOf = (text: string | null) =>
  text === null ? null : text.endsWith('infinity') ? Number(text.replace('i', 'I')) : Date.parse(text);

/** The default order, and those that a client asks for. */
const directions = [undefined, 'DESC', 'ASC'] as const;
type Direction = (typeof directions)[number];

/** The newest first; then by kind; then by descending id. `ASC` is the reverse of that. Those never visited are last in both. */
function compare(direction: Direction, a: Place, b: Place): number {
  const falling = direction === 'ASC' ? -1 : 1;
  if (a.time !== b.time) {
    if (a.time === null) return 1;
    if (b.time === null) return -1;
    return a.time > b.time ? -falling : falling;
  }
  return falling * (kinds.indexOf(a.kind) - kinds.indexOf(b.kind) || b.id - a.id);
}

/** What the cursors of each order begin with. */
const marks = new Map<Direction, string>();

const cursorOf = (direction: Direction, { kind, time, id }: Place) => {
  const value = time === null || Number.isFinite(time) ? time : String(time);
  return Buffer.from(JSON.stringify([marks.get(direction), id, [value], kind])).toString('base64url');
};

let created = 0;

const { database } = await databaseWith();
const [own, another] = await Promise.all(
  ['own', 'other'].map((username) => database.client.user.create({ data: { username } })),
);
const viewer = { id: own?.id ?? 0, tokenId: 1, scope: 'activate' } as const;
const other = another?.id ?? 0;

async function insert(kind: Kind, time: string | null, ownerId: number): Promise<Place> {
  const chip = kind === 'OssmDevice' ? ['chip', "'ESP32',"] : [];
  const { rows } = await database.pool.query<{ id: number }>(
    `INSERT INTO "${kind}" (${chip[0] ?? ''}${chip[0] ? ',' : ''} "ownerId", "bubbleId", "macAddress", "lastVisited")
    VALUES (${chip[1] ?? ''} $1, $2, 'AA:BB:CC:DD:EE:FF', $3) RETURNING id`,
    [ownerId, `device-${created++}`, time],
  );
  return { kind, time: timeOf(time), id: rows[0]?.id ?? 0 };
}

const document =
  parse(`query ($orderBy: [DeviceOrder!], $first: Int, $last: Int, $after: String, $before: String, $offset: Int) {
  devices(orderBy: $orderBy, first: $first, last: $last, after: $after, before: $before, offset: $offset) {
    totalCount
    nodes { __typename databaseId }
    edges { cursor }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
  }
}`);
const prepared = prepare(document);

type Args = Partial<Record<'first' | 'last' | 'offset', number> & Record<'after' | 'before', string>>;

/** The page, after a check that graphql-js and the prepared operation return the same. */
async function pageOf(direction: Direction, args: Args) {
  const context = () => createContext(database.sql, viewer, undefined);
  const variableValues = { ...args, ...(direction && { orderBy: { field: 'LAST_VISITED_AT', direction } }) };
  const { data, errors } = await execute({ schema, document, variableValues, contextValue: context() });
  expect(errors).toBeUndefined();
  const again = await prepared?.run(variableValues, context());
  expect(JSON.stringify(again?.data)).toBe(JSON.stringify(data));
  return JSON.parse(JSON.stringify(data?.devices));
}

/** The expected page. */
function expectedPage(
  direction: Direction,
  all: readonly Place[],
  args: Args,
  after?: Place,
  before?: Place,
) {
  const order = (a: Place, b: Place) => compare(direction, a, b);
  const within = all
    .toSorted(order)
    .filter((each) => (!after || order(each, after) > 0) && (!before || order(each, before) < 0));
  const { last, offset = 0 } = args;
  const size = last ?? args.first ?? 50;
  const rest = within.slice(offset);
  const page = last === undefined ? rest.slice(0, size) : within.slice(Math.max(0, within.length - size));
  const cursors = page.map((each) => cursorOf(direction, each));
  return {
    totalCount: all.length,
    nodes: page.map(({ kind, id }) => ({ __typename: kind, databaseId: id })),
    edges: cursors.map((cursor) => ({ cursor })),
    pageInfo: {
      hasNextPage: last === undefined ? rest.length > size : before !== undefined,
      hasPreviousPage: last === undefined ? after !== undefined || offset > 0 : within.length > size,
      startCursor: cursors[0] ?? null,
      endCursor: cursors.at(-1) ?? null,
    },
  };
}

it('a page of devices is the right slice of all devices for random arguments', async () => {
  // Half of them are of one kind, so that a page lies deep in it.
  const device = fc.record({ kind: fc.constantFrom(...kinds, kinds[1]), time: fc.constantFrom(...times) });
  // The position of a device that exists, was deleted, or never existed.
  const place = fc.record({
    kind: fc.constantFrom(...kinds),
    time: fc.constantFrom(...times),
    nth: fc.nat(15),
  });
  const request = fc.record({
    direction: fc.constantFrom(...directions),
    way: fc.constantFrom('first', 'first', 'last', undefined),
    // Mostly small ones: a large page reads all devices of each kind anyway.
    size: fc.oneof({ weight: 3, arbitrary: fc.integer({ min: 1, max: 3 }) }, fc.integer({ min: 1, max: 8 })),
    after: fc.option(place, { nil: undefined, freq: 2 }),
    before: fc.option(place, { nil: undefined, freq: 2 }),
    offset: fc.option(fc.nat(6), { nil: undefined, freq: 4 }),
  });
  await insert('DttDevice', '2026-01-01Z', other);
  await insert('OssmDevice', null, viewer.id);
  for (const direction of directions) {
    const [{ cursor }] = (await pageOf(direction, {})).edges;
    marks.set(direction, JSON.parse(Buffer.from(cursor, 'base64url').toString())[0]);
  }
  await fc.assert(
    fc.asyncProperty(
      fc.array(device, { maxLength: 16 }),
      fc.array(request, { minLength: 4, maxLength: 8 }),
      async (devices, requests) => {
        for (const kind of kinds)
          await database.pool.query(`DELETE FROM "${kind}" WHERE "ownerId" = $1`, [viewer.id]);
        const all: Place[] = [];
        for (const { kind, time } of devices) all.push(await insert(kind, time, viewer.id));
        for (const { direction, way, size, after, before, offset } of requests) {
          const bound = (given: typeof after): Place | undefined =>
            given && (all[given.nth] ?? { kind: given.kind, time: timeOf(given.time), id: given.nth });
          const [behind, ahead] = [bound(after), bound(before)];
          const args: Args = {
            ...(way && { [way]: size }),
            ...(behind && { after: cursorOf(direction, behind) }),
            ...(ahead && { before: cursorOf(direction, ahead) }),
            ...(offset !== undefined && way !== 'last' && { offset }),
          };
          const expected = expectedPage(direction, all, args, behind, ahead);
          expect(await pageOf(direction, args), JSON.stringify({ direction, args })).toEqual(expected);
        }
      },
    ),
    { numRuns: 20 },
  );
});
