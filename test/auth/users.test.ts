/** Creating, listing and changing users. */

import { expect, it } from 'vitest';
import { createToken, revokeToken } from '../../src/auth/tokens.ts';
import {
  type AccountOwner,
  createUser,
  findOwner,
  findTier,
  hasUsers,
  listUsers,
  setTier,
} from '../../src/auth/users.ts';
import { SetupError } from '../../src/errors.ts';
import { databaseWith } from '../support/setUp.ts';

const { database } = await databaseWith();
const { client, pool } = database;
const ownerWith = (table: string): AccountOwner => ({
  ...{ table, rejection: `They belong to ${table}.`, note: '', arrival: ['', ''] },
});

const wasUsed = await hasUsers(pool);
const ids = new Map<string, number>();
for (const [name, tier] of Object.entries({ zoe: 'ultra', adam: 'free', axb: 'free', a_b: 'premium' }))
  ids.set(name, await createUser(client, name, tier, [ownerWith('DttDevice')]));

it('users are listed by name, with the tier to which they were moved and how many active tokens they have', async () => {
  expect([wasUsed, await hasUsers(pool)]).toEqual([false, true]);
  await revokeToken(pool, (await createToken(pool, 'zoe', 'revoked')).id);
  for (const name of ['one', 'two']) await createToken(pool, 'zoe', name);
  expect([await setTier(client, 'zoe', 'premium'), await setTier(client, 'axb', 'ultra')]).toEqual([2, 0]);
  expect(await listUsers(client)).toEqual([
    { id: ids.get('a_b'), username: 'a_b', tier: 'premium', tokens: 0 },
    { id: ids.get('adam'), username: 'adam', tier: 'free', tokens: 0 },
    { id: ids.get('axb'), username: 'axb', tier: 'ultra', tokens: 0 },
    { id: ids.get('zoe'), username: 'zoe', tier: 'premium', tokens: 2 },
  ]);
  expect([await findTier(client, 'zoe'), await findTier(client, 'nobody')]).toEqual(['premium', undefined]);
});

const words = 'it takes visible characters, and no space at either end.';
const owners = ['DttDevice', 'User', 'LockTemplate'].map(ownerWith);
const create = (name: string, among?: AccountOwner[]) => createUser(client, name, 'free', among);

it.each<[what: string, change: () => Promise<unknown>, message: string]>([
  ['created with a space', () => create(' amy'), `The name " amy" cannot be used: ${words}`],
  ['created without a name', () => create(''), `The name "" cannot be used: ${words}`],
  ['created with an invisible name', () => create('a\u0007'), `The name "a\\u0007" cannot be used: ${words}`],
  // And not the one that only matches it as a pattern.
  ['created in another case', () => create('A_B'), 'There is already a user named "a_b".'],
  ['created where users belong to another', () => create('amy', owners), 'They belong to User.'],
  ['moved there', () => setTier(client, 'zoe', 'free', owners), 'They belong to User.'],
  ['moved if there is none', () => setTier(client, 'nobody', 'free'), 'There is no user named "nobody".'],
])('no user is %s', async (_, change, message) => {
  const before = await listUsers(client);
  await expect(change()).rejects.toThrow(new SetupError(message));
  expect(await listUsers(client)).toEqual(before);
});

it('another failure of the database is thrown as it is', async () => {
  await expect(setTier(client, 'zoe', '\0')).rejects.not.toBeInstanceOf(SetupError);
});

it('the owner of the users is the first whose table has rows', async () => {
  expect(await findOwner(client, owners)).toBe(owners[1]);
  expect(await findOwner(client, owners.slice(2))).toBeUndefined();
});
