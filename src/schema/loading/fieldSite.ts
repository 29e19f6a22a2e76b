/** Where in an operation a resolver stands, and what is remembered of the place from run to run. */

import type { FieldNode, GraphQLObjectType, GraphQLResolveInfo } from 'graphql';
import type { PlannedQuery } from '../../database/reader/query.ts';
import { conditionsOf } from '../conditions.ts';

/**
 * A field, the nodes of the document that ask for it, and what their conditions come to. They decide what is selected and
 * with which arguments, so two resolvers at the same place do the same for another parent. The path would not do: under an
 * interface, one path can lead through several types.
 */
export interface FieldSite {
  /** A text that no other place has. */
  readonly key: string;
  /**
   * The query that is run here in one of its variants, which is made once: it has slots for what differs from run to run.
   * @param variant tells the queries apart that differ in more than that: one of few texts.
   */
  query(variant: string, make: () => PlannedQuery): PlannedQuery;
}

interface Known extends FieldSite {
  readonly parentType: GraphQLObjectType;
  readonly nodes: readonly FieldNode[];
  readonly conditions: string;
}

/** The places of a document, by the first of their nodes: they are forgotten with it. */
const places = new WeakMap<FieldNode, Known[]>();

/** How many places are remembered for a field: conditions can have it meet other nodes in very many ways. */
const maxSites = 16;

export function fieldSiteOf(info: GraphQLResolveInfo): FieldSite {
  const { parentType, fieldNodes: nodes } = info;
  // Resolvers run for a field of the document, so there is at least one node.
  const [first] = nodes as readonly [FieldNode, ...FieldNode[]];
  const known = places.get(first) ?? [];
  const conditions = conditionsOf(info);
  const found = known.find(
    (place) =>
      place.parentType === parentType && place.conditions === conditions && areSame(place.nodes, nodes),
  );
  if (found) return found;
  const queries = new Map<string, PlannedQuery>();
  const place: Known = {
    key: [parentType.name, ...nodes.map(numberOf), conditions].join(' '),
    parentType,
    nodes,
    conditions,
    query(variant, make) {
      const query = queries.get(variant) ?? make();
      queries.set(variant, query);
      return query;
    },
  };
  if (known.length < maxSites) places.set(first, [...known, place]);
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
