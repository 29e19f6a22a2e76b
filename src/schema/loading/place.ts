/** The place of a field in an operation, and what is planned once for it and used each time the operation runs. */

import type { FieldNode, GraphQLObjectType, GraphQLResolveInfo } from 'graphql';
import { conditionsKeyOf } from '../directives.ts';

/**
 * A field in an operation: its parent type, the nodes of the document that select it, and the values of the `@skip` and `@include`
 * conditions. Together they determine the selection and the arguments, so resolvers at the same place do the same for different
 * parents. The response path would not suffice: under an interface, one path can lead through several types.
 */
export interface Place {
  /** Unique among all places. */
  readonly key: string;
  /** What was planned for this place under a name, which `plan` does the first time. There must be few names. */
  once<Value>(name: string, plan: () => Value): Value;
}

interface CachedPlace extends Place {
  readonly parentType: GraphQLObjectType;
  readonly nodes: readonly FieldNode[];
  readonly conditions: string;
}

/** The places by the first of their nodes, so that they are garbage-collected with the document. */
const places = new WeakMap<FieldNode, CachedPlace[]>();

/** How many places are cached for a field: conditions can combine nodes in very many ways. */
const maxPlaces = 16;

export function placeOf(info: GraphQLResolveInfo): Place {
  const { parentType, fieldNodes: nodes } = info;
  // A resolver runs for a field of the document, so there is at least one node.
  const [first] = nodes as readonly [FieldNode, ...FieldNode[]];
  const known = places.get(first) ?? [];
  const conditions = conditionsKeyOf(info);
  const found = known.find(
    (place) =>
      place.parentType === parentType && place.conditions === conditions && areSame(place.nodes, nodes),
  );
  if (found) return found;
  // A name always has values of the same type, which the type of the map cannot express.
  const planned = new Map<string, never>();
  const place: CachedPlace = {
    key: [parentType.name, ...nodes.map(numberOf), conditions].join(' '),
    parentType,
    nodes,
    conditions,
    once(name, plan) {
      const value = planned.get(name) ?? plan();
      planned.set(name, value as never);
      return value;
    },
  };
  if (known.length < maxPlaces) places.set(first, [...known, place]);
  return place;
}

const areSame = (one: readonly FieldNode[], other: readonly FieldNode[]) =>
  one === other || (one.length === other.length && one.every((node, index) => node === other[index]));

const nodeNumbers = new WeakMap<FieldNode, number>();
let lastNumber = 0;

function numberOf(node: FieldNode): number {
  const number = nodeNumbers.get(node) ?? ++lastNumber;
  nodeNumbers.set(node, number);
  return number;
}
