/**
 * Checks that the root field of a subscription has no condition (GraphQL, September 2025, section 5.2.4.1), as
 * graphql-js 16 does not.
 */

import { type DocumentNode, GraphQLError, Kind, OperationTypeNode, type SelectionNode } from 'graphql';
import { fragmentsOf } from '../schema/fragments.ts';
import { requestError } from './requestFailure.ts';

/**
 * An error about the first condition on the root field of a subscription, or on a fragment around it, if there
 * is one.
 */
export function conditionsOnRoot(document: DocumentNode): GraphQLError[] {
  const fragments = fragmentsOf(document);
  const spread = new Set<string>();
  const found: SelectionNode[] = [];
  const search = (selections: readonly SelectionNode[]): void => {
    for (const selection of selections) {
      if (selection.directives?.some(({ name }) => name.value === 'skip' || name.value === 'include'))
        found.push(selection);
      if (selection.kind === Kind.INLINE_FRAGMENT) search(selection.selectionSet.selections);
      if (selection.kind !== Kind.FRAGMENT_SPREAD || spread.has(selection.name.value)) continue;
      spread.add(selection.name.value);
      search(fragments.get(selection.name.value)?.selectionSet.selections ?? []);
    }
  };
  for (const node of document.definitions)
    if (node.kind === Kind.OPERATION_DEFINITION && node.operation === OperationTypeNode.SUBSCRIPTION)
      search(node.selectionSet.selections);
  if (found.length === 0) return [];
  const { message, extensions } = requestError('A subscription cannot have @skip or @include on its field');
  return [new GraphQLError(message, { nodes: found.slice(0, 1), extensions })];
}
