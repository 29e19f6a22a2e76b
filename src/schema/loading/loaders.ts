/**
 * The places of fields in an operation, with the plans that are made once for each, and the DataLoaders of an operation, which
 * read linked records in batches.
 */

import DataLoader from 'dataloader';
import type { FieldNode, GraphQLObjectType, GraphQLResolveInfo } from 'graphql';

/**
 * A field in an operation: its parent type, and the nodes of the document that select it. Together they determine the selection and
 * the arguments, so resolvers at the same place do the same for different parents. The response path would not suffice: under
 * an interface, one path can lead through several types.
 */
export interface Place {
  /** The plan of this place with that name. `plan` makes it the first time. There must be few names. */
  once<Value>(name: string, plan: () => Value): Value;
}

interface CachedPlace extends Place {
  readonly parentType: GraphQLObjectType;
  readonly nodes: readonly FieldNode[];
}

/** The places by the first of their nodes, so that they are garbage-collected with the document. */
const places = new WeakMap<FieldNode, CachedPlace[]>();

/** Always returns the same object for a place. */
export function placeOf({ parentType, fieldNodes: nodes }: GraphQLResolveInfo): Place {
  // A resolver runs for a field of the document, so there is at least one node.
  const [first] = nodes as readonly [FieldNode, ...FieldNode[]];
  const known = places.get(first) ?? [];
  const found = known.find((place) => place.parentType === parentType && areSame(place.nodes, nodes));
  if (found) return found;
  // A name always has values of the same type, which the type of the map cannot express.
  const planned = new Map<string, never>();
  const place: CachedPlace = {
    parentType,
    nodes,
    once(name, plan) {
      const value = planned.get(name) ?? plan();
      planned.set(name, value as never);
      return value;
    },
  };
  places.set(first, [...known, place]);
  return place;
}

const areSame = (one: readonly FieldNode[], other: readonly FieldNode[]) =>
  one === other || (one.length === other.length && one.every((node, index) => node === other[index]));

/** Reads the values of many ids at once. The result has no entry for an id without a value. */
type Batch<Value> = (ids: readonly number[]) => Promise<ReadonlyMap<number, Value>>;

export interface Loaders {
  /**
   * The loader of a place in the operation, or of a name. All objects of a list resolve the same place, so their
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
