import { expect, it } from 'vitest';
import { conditionsKey } from '../../src/schema/conditions.ts';

it('the key of conditions depends on boolean values alone, whatever else a client gives to variables of those names', () => {
  const names = ['x', 'g', 'z'];
  const decisions = [
    { x: 's', g: true, z: 'false,r' },
    { x: 's,true', g: false, z: 'r' },
    { x: 's', g: null, z: 'r' },
    { x: false, g: true, z: true },
  ].map((variables) => conditionsKey(names, variables));
  expect(new Set(decisions).size).toBe(4);
  expect(conditionsKey(names, { x: ['any', 'thing'], g: true })).toBe(decisions[0]);
  expect(conditionsKey([], { x: true })).toBe('');
});
