/** The per-request DataLoaders that link types. */

import DataLoader from 'dataloader';

/** Finds the values of many ids in one go. An id without a value is left out. */
type Batch<Value> = (ids: readonly number[]) => Promise<ReadonlyMap<number, Value>>;

export interface Loaders {
  /**
   * The loader of a place in the operation (`place.ts`, by its key). The objects of a list all resolve the same place, so
   * their look-ups meet in one batch; another place may select other columns or pass other arguments, so it has a
   * loader of its own. `createBatch` runs once per place.
   */
  at<Value>(place: string, createBatch: () => Batch<Value>): DataLoader<number, Value | undefined>;
  /** A value that is the same whoever asks for it by this name: read for the first, and remembered for the others. */
  once<Value>(name: string, read: () => Promise<Value>): Promise<Value>;
  /** Forgets everything: what was read before something was written, or by another way of running the operation. */
  clear(): void;
}

export function createLoaders(): Loaders {
  // A place always creates the same type of loader, which a map of all of them cannot express.
  const loaders = new Map<string, DataLoader<number, never>>();
  const values = new Map<string, Promise<never>>();
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
    once(name, read) {
      let value = values.get(name);
      if (!value) {
        value = read() as Promise<never>;
        values.set(name, value);
      }
      return value;
    },
    clear() {
      loaders.clear();
      values.clear();
    },
  };
}
