/** The DataLoaders of an operation, which read the records that others link to in batches. */

import DataLoader from 'dataloader';
import type { Place } from './place.ts';

/** Reads the values of many ids at once. The result has no entry for an id without a value. */
type Batch<Value> = (ids: readonly number[]) => Promise<ReadonlyMap<number, Value>>;

export interface Loaders {
  /**
   * The loader of a place in the operation (`place.ts`), or of a name. All objects of a list resolve the same place, so their
   * look-ups are batched. Another place may select other columns or pass other arguments, so it has a loader of its own.
   * `createBatch` is called once per place.
   */
  at<Value>(place: Place | string, createBatch: () => Batch<Value>): DataLoader<number, Value | undefined>;
  /** A value that is read once per operation: the first call with a place or a name reads it, and later calls share the result. */
  once<Value>(place: Place | string, read: () => Promise<Value>): Promise<Value>;
  /** Discards everything that was read, after a write or before the operation is executed again. */
  clear(): void;
}

export function createLoaders(): Loaders {
  // A place always creates loaders of the same type, which the type of the map cannot express.
  const loaders = new Map<Place | string, DataLoader<number, never>>();
  const values = new Map<Place | string, Promise<never>>();
  return {
    at(place, createBatch) {
      let loader = loaders.get(place);
      if (!loader) {
        const batch = createBatch();
        loader = new DataLoader(async (ids) => {
          const found = await batch(ids);
          return ids.map((id) => found.get(id) as never);
        });
        loaders.set(place, loader);
      }
      return loader;
    },
    once(place, read) {
      let value = values.get(place);
      if (!value) {
        value = read() as Promise<never>;
        values.set(place, value);
      }
      return value;
    },
    clear() {
      loaders.clear();
      values.clear();
    },
  };
}
