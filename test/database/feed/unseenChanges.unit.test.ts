import { expect, it } from 'vitest';
import { createUnseenChanges } from '../../../src/database/feed/unseenChanges.ts';

const [alice, bob] = [1, 2];
const table = 'DttDevice';

it('a change affects its user until it is removed, and so does each of several changes', () => {
  const { add, affects } = createUnseenChanges();
  const [removeOne, removeOther] = [1, 2].map(() => add({ kind: 'user', userId: alice, table }));
  expect([alice, bob].map(affects)).toEqual([true, false]);
  removeOne?.();
  expect(affects(alice)).toBe(true);
  removeOther?.();
  expect(affects(alice)).toBe(false);
});

it('a change for all users affects every user until it is removed, and so does each of several changes', () => {
  const { add, affects } = createUnseenChanges();
  const [removeOne, removeOther] = [1, 2].map(() => add({ kind: 'all', table }));
  removeOne?.();
  expect([alice, bob].map(affects)).toEqual([true, true]);
  removeOther?.();
  expect([alice, bob].map(affects)).toEqual([false, false]);
});
