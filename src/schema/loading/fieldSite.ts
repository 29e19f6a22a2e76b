/** The site of a field in an operation, and the queries that are reused each time the operation runs. */

import type { FieldNode, GraphQLObjectType, GraphQLResolveInfo } from 'graphql';
import type { PlannedQuery } from '../../database/reader/query.ts';
import { conditionsKeyOf } from '../conditions.ts';

/**
 * A field in an operation: its parent type, the nodes of the document that select it, and the values of the `@skip` and `@include`
 * conditions. Together they determine the selection and the arguments, so resolvers at the same site do the same for different
 * parents. The response path would not suffice: under an interface, one path can lead through several types.
 */
export interface FieldSite {
  /** Unique among all sites. */
  readonly key: string;
  /**
   * The query of this site. It is made once for each variant, with slots for values that differ between runs.
   * @param variant distinguishes queries that differ in more than such values. There must be few variants.
   */
  query(variant: string, make: () => PlannedQuery): PlannedQuery;
}

interface CachedSite extends FieldSite {
  readonly parentType: GraphQLObjectType;
  readonly nodes: readonly FieldNode[];
  readonly conditions: string;
}

/** The sites by the first of their nodes, so that they are garbage-collected with the document. */
const sites = new WeakMap<FieldNode, CachedSite[]>();

/** How many sites are cached for a field: conditions can combine nodes in very many ways. */
const maxSites = 16;

export function fieldSiteOf(info: GraphQLResolveInfo): FieldSite {
  const { parentType, fieldNodes: nodes } = info;
  // A resolver runs for a field of the document, so there is at least one node.
  const [first] = nodes as readonly [FieldNode, ...FieldNode[]];
  const known = sites.get(first) ?? [];
  const conditions = conditionsKeyOf(info);
  const found = known.find(
    (site) => site.parentType === parentType && site.conditions === conditions && areSame(site.nodes, nodes),
  );
  if (found) return found;
  const queries = new Map<string, PlannedQuery>();
  const site: CachedSite = {
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
  if (known.length < maxSites) sites.set(first, [...known, site]);
  return site;
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
