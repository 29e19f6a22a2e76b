import { expect, it } from 'vitest';
import { decisionsOf } from '../../src/schema/conditions.ts';

it('what decides conditions is told apart by truth alone, whatever texts a client gives to variables of those names', () => {
  const names = ['x', 'g', 'z'];
  const decisions = [
    { x: 's', g: true, z: 'false,r' },
    { x: 's,true', g: false, z: 'r' },
    { x: 's', g: null, z: 'r' },
    { x: false, g: true, z: true },
  ].map((variables) => decisionsOf(names, variables));
  expect(new Set(decisions).size).toBe(4);
  expect(decisionsOf(names, { x: ['any', 'thing'], g: true })).toBe(decisions[0]);
  expect(decisionsOf([], { x: true })).toBe('');
});
