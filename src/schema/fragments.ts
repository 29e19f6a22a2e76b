/** The fragments of a document, by their names. */

import { type DocumentNode, type FragmentDefinitionNode, Kind } from 'graphql';

export function fragmentsOf({ definitions }: DocumentNode): Map<string, FragmentDefinitionNode> {
  return new Map(
    definitions.flatMap((node) =>
      node.kind === Kind.FRAGMENT_DEFINITION ? [[node.name.value, node] as const] : [],
    ),
  );
}
