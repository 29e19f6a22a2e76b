/**
 * Evaluates `@skip` and `@include` (GraphQL specification, section 3.13). A valid operation can have no other directives.
 */

import {
  type ASTNode,
  type DirectiveNode,
  type GraphQLResolveInfo,
  Kind,
  type OperationDefinitionNode,
  visit,
} from 'graphql';

type Values = Readonly<Record<string, unknown>>;

/** Whether the directives of a node include it in the operation, for these values of the variables. */
export function isIncluded(
  { directives = [] }: { readonly directives?: readonly DirectiveNode[] | undefined },
  variables: Values,
): boolean {
  return directives.every((directive) => {
    const condition = conditionOf(directive);
    const value =
      condition?.kind === Kind.VARIABLE
        ? variables[condition.name.value]
        : condition?.kind === Kind.BOOLEAN && condition.value;
    return value === (directive.name.value === 'include');
  });
}

/** The names of the variables that the conditions below a node use. */
export function conditionVariablesIn(node: ASTNode): string[] {
  const names = new Set<string>();
  visit(node, {
    Directive(directive) {
      const condition = conditionOf(directive);
      if (condition?.kind === Kind.VARIABLE) names.add(condition.name.value);
    },
  });
  return [...names];
}

const conditionOf = ({ arguments: given }: DirectiveNode) =>
  given?.find(({ name }) => name.value === 'if')?.value;

/**
 * The values of these variables as a key: with the same key, the same nodes are excluded. A variable that is not boolean belongs to
 * another operation of the document and is used in none of this operation's conditions.
 */
export function conditionsKey(names: readonly string[], variables: Values): string {
  let key = '';
  for (const name of names) {
    const value = variables[name];
    key += typeof value === 'boolean' ? Number(value) : '-';
  }
  return key;
}

const known = new WeakMap<OperationDefinitionNode, readonly string[]>();

/** The values of all conditions of the operation that a resolver runs for, as a key. */
export function conditionsKeyOf({ operation, fragments, variableValues }: GraphQLResolveInfo): string {
  let names = known.get(operation);
  if (!names) {
    names = [...new Set([operation, ...Object.values(fragments)].flatMap(conditionVariablesIn))];
    known.set(operation, names);
  }
  return conditionsKey(names, variableValues);
}
