/** Users of a database of one's own. The commands that use this are tested in `test/cli`. */

import { expect, it } from 'vitest';
import { createToken, revokeToken } from '../../src/auth/tokens.ts';
import { createUser, findTier, hasUsers, listUsers, setTier } from '../../src/auth/users.ts';
import { SetupError } from '../../src/errors.ts';
import { databaseWith } from '../support/setUp.ts';

const { database } = await databaseWith();

it('users are created, found, listed by name and moved to another tier', async () => {
  const { client, pool } = database;
  expect(await hasUsers(pool)).toBe(false);
  const zoe = await createUser(client, 'zoe', 'free');
  expect(await hasUsers(pool)).toBe(true);
  const bob = await createUser(client, 'Bob', 'ultra');
  const { id: revoked } = await createToken(database.pool, 'Bob', 'revoked');
  await createToken(database.pool, 'Bob', 'active');
  await revokeToken(database.client, revoked);
  await setTier(client, 'zoe', 'premium');
  expect(await listUsers(client)).toEqual([
    { id: bob, username: 'Bob', tier: 'ultra', tokens: 1 },
    { id: zoe, username: 'zoe', tier: 'premium', tokens: 0 },
  ]);
  expect(await findTier(client, 'zoe')).toBe('premium');
  expect(await findTier(client, 'nobody')).toBeUndefined();
});

it('a taken name is told from one that only matches it as a pattern', async () => {
  const { client } = database;
  for (const name of ['axb', 'a_b']) await createUser(client, name, 'free');
  await expect(createUser(client, 'A_B', 'free')).rejects.toThrow(
    new SetupError('There is already a user named "a_b".'),
  );
});

const words = 'it takes visible characters, and no space at either end.';
it.each([
  ['BOB', 'free', 'There is already a user named "Bob".'],
  [' amy', 'free', `The name " amy" cannot be used: ${words}`],
  ['', 'free', `The name "" cannot be used: ${words}`],
  ['a\u0007', 'free', `The name "a\\u0007" cannot be used: ${words}`],
])('the user %j of the tier %j cannot be created', async (name, tier, message) => {
  await expect(createUser(database.client, name, tier)).rejects.toThrow(new SetupError(message));
});

it('a user who does not exist cannot be moved to another tier', async () => {
  await expect(setTier(database.client, 'nobody', 'free')).rejects.toThrow(
    new SetupError('There is no user named "nobody".'),
  );
});
