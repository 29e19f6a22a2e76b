/** The store of the queries that clients have registered by their hashes. */

import { expect, it } from 'vitest';
import { createRegisteredQueries } from '../../src/graphql/registeredQueries.ts';

const [alice, bob, carol] = [1, 2, 3];
/** A query that counts as 1,000 bytes. */
const large = (letter: string) => letter.repeat(400);

it('a registered query is found for the user who registered it, and for no other user', () => {
  const registered = createRegisteredQueries();
  registered.add(alice, 'a', '{ a }');
  registered.add(bob, 'b', '{ b }');
  expect(registered.find(alice, 'a')).toBe('{ a }');
  for (const [userId, hash] of [
    [bob, 'a'],
    [carol, 'a'],
    [alice, 'b'],
    [alice, '__proto__'],
  ] as const)
    expect(registered.find(userId, hash)).toBeUndefined();
  registered.add(bob, 'a', '{ a }');
  expect(registered.find(bob, 'a')).toBe('{ a }');
});

it('when a user has too much, the least recently used query is evicted, and none of another user', () => {
  const registered = createRegisteredQueries({ perUser: 2_500, all: 1_000_000 });
  const found = (userId: number) =>
    ['a', 'b', 'c', 'd'].filter((hash) => registered.find(userId, hash) === large(hash)).join('');
  registered.add(bob, 'a', large('a'));
  for (const hash of ['a', 'b']) registered.add(alice, hash, large(hash));
  expect(registered.find(alice, 'a')).toBeDefined();
  registered.add(alice, 'c', large('c'));
  expect(found(alice)).toBe('ac');
  // Registered again, it is the most recently used one.
  registered.add(alice, 'a', large('a'));
  registered.add(alice, 'd', large('d'));
  expect(found(alice)).toBe('ad');
  expect(found(bob)).toBe('a');
});

it('a query that is too large for a user is not registered, and evicts nothing', () => {
  const registered = createRegisteredQueries({ perUser: 2_500, all: 1_000_000 });
  registered.add(alice, 'a', large('a'));
  registered.add(alice, 'b', 'b'.repeat(1_200));
  expect(registered.find(alice, 'b')).toBeUndefined();
  expect(registered.find(alice, 'a')).toBeDefined();
});

it('when all users together have too much, the user whose last request is the oldest loses all queries', () => {
  const registered = createRegisteredQueries({ perUser: 2_500, all: 5_500 });
  for (const userId of [alice, bob]) for (const hash of ['a', 'b']) registered.add(userId, hash, large(hash));
  registered.find(alice, 'a');
  registered.add(carol, 'a', large('a'));
  const found = (userId: number) => ['a', 'b'].filter((hash) => registered.find(userId, hash)).join('');
  expect([alice, bob, carol].map(found)).toEqual(['ab', 'ab', 'a']);
  registered.find(alice, 'a');
  registered.add(carol, 'b', large('b'));
  expect([alice, bob, carol].map(found)).toEqual(['ab', '', 'ab']);
});
