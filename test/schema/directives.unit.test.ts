import { expect, it } from 'vitest';
import { conditionsKey } from '../../src/schema/directives.ts';

it('the key of conditions depends on the values of boolean variables, and on no other value that a client may send for them', () => {
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
