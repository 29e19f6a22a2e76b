/** Documents for the executors: their fragments, without conditions, and for variables that are coerced already. */

import { randomUUID } from 'node:crypto';
import {
  type ASTNode,
  type DocumentNode,
  type FragmentDefinitionNode,
  GraphQLIncludeDirective,
  GraphQLScalarType,
  GraphQLSkipDirective,
  getDirectiveValues,
  Kind,
  type NamedTypeNode,
  type ValueNode,
  visit,
} from 'graphql';

/** The fragments of a document, by their names. */
export function fragmentsOf({ definitions }: DocumentNode): Map<string, FragmentDefinitionNode> {
  const fragments = definitions.filter((node) => node.kind === Kind.FRAGMENT_DEFINITION);
  return new Map(fragments.map((node) => [node.name.value, node]));
}

/** The values of variables by their names. */
export type Values = Readonly<Record<string, unknown>>;

/** The type of values that are coerced already. Its name is random, so no client can use it. */
const coercedType = new GraphQLScalarType({ name: 'Coerced', parseValue: (value) => value });
const nameOfType = randomUUID();
const typeNode: NamedTypeNode = {
  kind: Kind.NAMED_TYPE,
  name: { kind: Kind.NAME, value: nameOfType },
};

/** Finds that type by its name in the documents made here. */
export const findCoercedType = (name: string) => (name === nameOfType ? coercedType : undefined);

/**
 * Copies a valid document for coerced values of its variables. These include the defaults of variables that were not sent. Every node
 * is a copy, since graphql-jit modifies nodes.
 * @param conditions the values of variables in `@skip` and `@include`: the copy has neither these directives nor what they
 * exclude. Without them, the directives stay.
 */
export function executableDocument(document: DocumentNode, conditions?: Values): DocumentNode {
  return visit(document, {
    enter(node: ASTNode) {
      if (node.kind === Kind.VARIABLE_DEFINITION) {
        const { defaultValue: _, ...others } = node;
        return { ...others, type: typeNode };
      }
      if (!conditions || !('directives' in node) || !node.directives) return { ...node };
      const isSkipped = getDirectiveValues(GraphQLSkipDirective, node, conditions)?.if === true;
      if (isSkipped || getDirectiveValues(GraphQLIncludeDirective, node, conditions)?.if === false)
        return null;
      const { directives: _, ...others } = node;
      return others;
    },
  });
}

/** The names of the variables in the conditions of a document. */
export function conditionVariablesIn(document: DocumentNode): string[] {
  const names = new Set<string>();
  visit(document, {
    Directive({ arguments: given = [] }) {
      for (const { value } of given) if (value.kind === Kind.VARIABLE) names.add(value.name.value);
    },
  });
  return [...names];
}

/** Whether a value in a document contains a variable, or that of a certain name. */
export function hasVariable(value: ValueNode, wanted?: string): boolean {
  let found = false;
  visit(value, {
    Variable({ name }) {
      found ||= wanted === undefined || name.value === wanted;
    },
  });
  return found;
}
