import { expect, it, vi } from 'vitest';
import { closeAll } from '../../src/database/closing.ts';

it.each([
  ['what failed before', [new Error('before')], 'before'],
  ['what fails first', [], 'one'],
])('closes everything in order, and throws %s', async (_, errors: Error[], first) => {
  const closed = vi.fn();
  const failing = (name: string) => ({
    close() {
      closed(name);
      return Promise.reject(new Error(name));
    },
  });
  await expect(closeAll([failing('one'), {}, failing('two')], errors)).rejects.toThrow(first);
  expect(closed.mock.calls).toEqual([['one'], ['two']]);
  expect(errors.map(({ message }) => message).slice(-2)).toEqual(['one', 'two']);
});
