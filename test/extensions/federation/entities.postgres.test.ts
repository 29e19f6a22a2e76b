/** The fields for a federation gateway: entities, which are the viewer's records by their keys, and the SDL of the subgraph. */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { recordTypes } from '../../../src/database/models.ts';
import type { Account } from '../../support/accounts.ts';
import { graphqlOnce, graphqlOnEveryPath } from '../../support/gateway.ts';
import { newFolder } from '../../support/newFolder.ts';
import { type Keys, keys, recordsSeenBy } from '../../support/nodes.ts';
import { gatewayBeside, gatewayWith } from '../../support/setUp.ts';
import { noteStatements } from '../../support/statements.ts';

const { gateway, alice, bob } = await gatewayWith(['alice', 'bob'], { settings: { FEDERATION: 'on' } });

const statements = noteStatements();

const types = recordTypes.toSorted();
const entities = (selection = keys) =>
  `query ($representations: [_Any!]!) { _entities(representations: $representations) { ${selection} } }`;

/** Up to two records of each type. */
const recordsOf = ({ token }: Account) => recordsSeenBy(gateway, token, 2);

const byId = ({ __typename, id }: Keys) => ({ __typename, id });
const byDatabaseId = ({ __typename, databaseId }: Keys) => ({ __typename, databaseId });

describe('entities', () => {
  it('are the records of every type, by either key, in the order of the representations', async () => {
    const records = await recordsOf(alice);
    expect([...new Set(records.map(({ __typename }) => __typename))].sort()).toEqual(types);
    const ways: ((record: Keys) => object)[] = [byId, byDatabaseId, (record) => record];
    for (const key of ways) {
      const { data, errors } = await graphqlOnEveryPath(gateway, alice.token, entities(), {
        representations: [...records.map(key), ...[...records].reverse().map(key)],
      });
      expect(errors).toBeUndefined();
      expect(data._entities).toEqual([...records, ...[...records].reverse()]);
    }
  });

  it('of another user are null, as are those that do not exist', async () => {
    const [own, foreign] = [await recordsOf(alice), await recordsOf(bob)];
    const missing = types.flatMap((__typename) =>
      [0, -1, 2 ** 31 - 1, 2 ** 31, 2 ** 53].map((databaseId) => ({ __typename, databaseId })),
    );
    const representations = [
      ...missing,
      ...foreign.map(byId),
      ...own.map(byId),
      ...foreign.map(byDatabaseId),
    ];
    const { data, errors } = await graphqlOnEveryPath(gateway, alice.token, entities(), { representations });
    expect(errors).toBeUndefined();
    const none = foreign.map(() => null);
    expect(data._entities).toEqual([...missing.map(() => null), ...none, ...own, ...none]);
  });

  it('are read with one statement for each type, however many there are', async () => {
    const records = await recordsOf(alice);
    const representations = records.flatMap((record) => [byId(record), byDatabaseId(record)]);
    statements.length = 0;
    await graphqlOnce(gateway, alice.token, entities(`${keys} other: __typename`), { representations });
    expect(statements).toHaveLength(types.length);
  });

  const noKey = /must have its global id as id/;
  it.each<[what: string, representation: unknown, message: RegExp]>([
    ['is no object', 7, /must have a __typename that is an entity/],
    ['has no key', { __typename: 'User' }, noKey],
    ['has a number that is not an integer', { __typename: 'User', databaseId: 1.5 }, noKey],
    ['has an id that is not a global id', { __typename: 'User', id: 'x' }, /not a global id/],
    ['has the id of another type', { __typename: 'User', id: 'RHR0RGV2aWNlOjE' }, noKey],
    ['has an id that is not a string', { __typename: 'User', id: { a: 1 } }, noKey],
  ])('are null with an error for a representation that %s', async (_, representation, message) => {
    const { data, errors } = await graphqlOnEveryPath(gateway, alice.token, entities(), {
      representations: [{ __typename: 'User', databaseId: alice.userId }, representation],
    });
    expect(data).toBeNull();
    expect(errors).toEqual([
      expect.objectContaining({
        message: expect.stringMatching(message),
        extensions: { code: 'BAD_USER_INPUT', argument: 'representations' },
      }),
    ]);
  });
});

describe('the limits', () => {
  const many = (length: number) =>
    Array.from({ length }, () => ({ __typename: 'User', databaseId: alice.userId }));
  const messageFor = async (query: string, representations: unknown) =>
    (await graphqlOnEveryPath(gateway, alice.token, query, { representations })).errors?.[0]?.message;

  it('count the selection once for each representation', async () => {
    const selection = '... on User { username rank dttSessions(first: 50) { nodes { id } } }';
    // For each of the 900: two fields, the connection, its list and 50 ids. Besides, the field `_entities` itself.
    expect(await messageFor(entities(selection), many(900))).toMatch(/complexity of 48601;/);
  });
});

it('a request without a valid token may read the SDL of the subgraph, like the schema, but not repeatedly in one operation', async () => {
  const ask = (query: string) => graphqlOnce(gateway, undefined, query);
  const { data } = await ask('{ _service { sdl } }');
  expect(data._service.sdl).toContain(
    'type DttSession implements Node @key(fields: "id") @key(fields: "databaseId")',
  );
  // Composition does not know it.
  expect(data._service.sdl).not.toContain('@oneOf');
  expect(data._service.sdl).toContain('type PageInfo @shareable {');
  expect(data._service.sdl).toMatch(/^schema @link\(url: "https:\/\/specs/m);
  expect((await ask('{ _service { sdl } viewer { id } }')).status).toBe(401);
  const often = Array.from({ length: 5 }, (_, index) => `a${index}: _service { sdl }`).join(' ');
  const texts = Array.from({ length: 5 }, (_, index) => `a${index}: sdl`).join(' ');
  for (const query of [`{ ${often} }`, `{ _service { ${texts} } }`])
    expect((await ask(query)).errors?.[0]?.message).toMatch(/^The operation has a complexity of 25\d{3}/);
});

it('a gateway with INTROSPECTION=off returns entities, but not the SDL of the subgraph', async () => {
  // Operations of the file may ask for entities too.
  const file = join(newFolder(), 'operations.json');
  await writeFile(file, JSON.stringify({ entities: entities() }));
  const settings = { FEDERATION: 'on', INTROSPECTION: 'off', PERSISTED_OPERATIONS_FILE: file };
  const closed = await gatewayBeside(gateway.database, { settings });
  const text = '{ _service { sdl } }';
  expect((await graphqlOnce(closed, undefined, text)).status).toBe(401);
  expect((await graphqlOnce(closed, bob.token, text)).errors).toHaveLength(1);
  const representations = [{ __typename: 'User', databaseId: bob.userId }];
  const { data } = await graphqlOnce(closed, bob.token, entities(), { representations });
  expect(data._entities).toHaveLength(1);
});

it('a gateway with FEDERATION=off has neither of the fields for federation', async () => {
  const plain = await gatewayBeside(gateway.database);
  for (const query of ['{ _service { sdl } }', '{ _entities(representations: []) { __typename } }'])
    expect((await graphqlOnce(plain, bob.token, query)).errors?.[0]?.message).toMatch(/^Cannot query field/);
  expect((await graphqlOnce(plain, undefined, '{ _service { sdl } }')).status).toBe(401);
});
