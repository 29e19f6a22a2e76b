/** The place of a field in an operation, and what is planned once for it and used each time the operation runs. */

import type { FieldNode, GraphQLObjectType, GraphQLResolveInfo } from 'graphql';

/**
 * A field in an operation: its parent type, and the nodes of the document that select it. Together they determine the selection and
 * the arguments, so resolvers at the same place do the same for different parents. The response path would not suffice: under
 * an interface, one path can lead through several types.
 */
export interface Place {
  /** What was planned for this place under a name, which `plan` does the first time. There must be few names. */
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
