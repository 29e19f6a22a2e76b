/** The names of users. The rest is tested by the commands, in `test/cli`. */

import { expect, it } from 'vitest';
import { createUser } from '../../src/auth/users.ts';
import { SetupError } from '../../src/errors.ts';
import { databaseWith } from '../support/setUp.ts';

const { database } = await databaseWith();

it('a taken name is told from one that only matches it as a pattern', async () => {
  const { client } = database;
  for (const name of ['axb', 'a_b']) await createUser(client, name, 'free');
  await expect(createUser(client, 'A_B', 'free')).rejects.toThrow(
    new SetupError('There is already a user named "a_b".'),
  );
});

const words = 'it takes visible characters, and no space at either end.';
it.each([
  [' amy', 'free', `The name " amy" cannot be used: ${words}`],
  ['', 'free', `The name "" cannot be used: ${words}`],
  ['a\u0007', 'free', `The name "a\\u0007" cannot be used: ${words}`],
])('the user %j of the tier %j cannot be created', async (name, tier, message) => {
  await expect(createUser(database.client, name, tier)).rejects.toThrow(new SetupError(message));
});
