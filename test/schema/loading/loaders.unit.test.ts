/** The loaders of an operation: reads of the same place are batched, and reads with the same name are shared. */

import { describe, expect, it } from 'vitest';
import { createLoaders } from '../../../src/schema/loading/loaders.ts';

describe('a loader at a place', () => {
  it('reads its ids in one batch, each once, and returns undefined for an id without a value', async () => {
    const loaders = createLoaders();
    const batches: (readonly number[])[] = [];
    const at = (place: string) =>
      loaders.at(place, () => async (ids) => {
        batches.push(ids);
        return new Map(ids.filter((id) => id !== 3).map((id) => [id, `${place} ${id}`]));
      });
    const values = [at('a').load(2), at('a').load(1), at('b').load(1), at('a').load(3), at('a').load(2)];
    expect(await Promise.all(values)).toEqual(['a 2', 'a 1', 'b 1', undefined, 'a 2']);
    expect(batches).toEqual([[2, 1, 3], [1]]);
    expect(await at('a').load(1)).toBe('a 1');
    expect(batches).toHaveLength(2);
    loaders.clear();
    expect(await at('a').load(1)).toBe('a 1');
    expect(batches).toHaveLength(3);
  });
});

describe('a read with a name', () => {
  it('is executed once for concurrent and later calls, until the loaders are cleared', async () => {
    const loaders = createLoaders();
    let reads = 0;
    const read = (name: string) => loaders.once(name, async () => `${name} ${++reads}`);
    expect(await Promise.all([read('a'), read('a'), read('b')])).toEqual(['a 1', 'a 1', 'b 2']);
    expect(await read('a')).toBe('a 1');
    loaders.clear();
    expect(await read('a')).toBe('a 3');
  });
});
