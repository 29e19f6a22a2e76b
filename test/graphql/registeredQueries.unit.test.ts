/** The store of the queries that clients have registered by their hashes. */

import { expect, it } from 'vitest';
import { createRegisteredQueries } from '../../src/graphql/registeredQueries.ts';

const [alice, bob, carol] = [1, 2, 3];
const roomy = 1_000_000;

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

it('when a user has too many queries, the least recently used one is evicted, and none of another user', () => {
  const perUser = { queries: 2, bytes: roomy };
  const registered = createRegisteredQueries({ perUser, bytes: roomy });
  registered.add(bob, 'a', '{ a }');
  for (const hash of ['a', 'b']) registered.add(alice, hash, `{ ${hash} }`);
  expect(registered.find(alice, 'a')).toBe('{ a }');
  registered.add(alice, 'c', '{ c }');
  expect(['a', 'b', 'c'].map((hash) => registered.find(alice, hash))).toEqual(['{ a }', undefined, '{ c }']);
  // Registered again, it is the most recently used one.
  registered.add(alice, 'a', '{ a }');
  registered.add(alice, 'd', '{ d }');
  expect(['a', 'c', 'd'].map((hash) => registered.find(alice, hash))).toEqual(['{ a }', undefined, '{ d }']);
  expect(registered.find(bob, 'a')).toBe('{ a }');
});

it('the queries of a user are limited in size, and a query that is too large is not registered', () => {
  const registered = createRegisteredQueries({ perUser: { queries: 100, bytes: 100 }, bytes: roomy });
  for (const hash of ['a', 'b', 'c']) registered.add(alice, hash, hash.repeat(20));
  expect(['a', 'b', 'c'].map((hash) => registered.find(alice, hash) !== undefined)).toEqual([
    false,
    true,
    true,
  ]);
  registered.add(alice, 'd', 'd'.repeat(51));
  expect(registered.find(alice, 'd')).toBeUndefined();
  expect(registered.find(alice, 'c')).toBeDefined();
});

it('all queries together are limited in size: the least recently active user loses queries, and equal texts count once', () => {
  const text = 'x'.repeat(5_000);
  // Enough for one text and a few registrations.
  const registered = createRegisteredQueries({ perUser: { queries: 100, bytes: roomy }, bytes: 11_400 });
  for (const userId of [alice, bob, carol]) registered.add(userId, 'x', text);
  expect([alice, bob, carol].map((userId) => registered.find(userId, 'x'))).toEqual([text, text, text]);
  registered.find(alice, 'x');
  registered.add(carol, 'y', 'y'.repeat(400));
  expect([alice, bob, carol].map((userId) => registered.find(userId, 'x') !== undefined)).toEqual([
    true,
    false,
    true,
  ]);
  // A text is released with its last registration, and then there is room for another.
  for (const userId of [alice, carol]) registered.add(userId, 'z', 'z'.repeat(5_000));
  expect([alice, carol].map((userId) => registered.find(userId, 'z') !== undefined)).toEqual([true, true]);
  expect([alice, bob, carol].map((userId) => registered.find(userId, 'x'))).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  // Registered again, it takes as much room as before.
  registered.add(bob, 'x', text);
  expect(registered.find(bob, 'x')).toBe(text);
  expect([alice, carol].map((userId) => registered.find(userId, 'z'))).toEqual([undefined, undefined]);
});
