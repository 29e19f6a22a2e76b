/** Which argument or variable an error is about, for those that graphql-js makes: they point into the document. */

import { type ArgumentNode, type DocumentNode, GraphQLError, Kind, visit } from 'graphql';

/** Notes in the errors of graphql-js which argument and which variable each is about, where that can be told. */
export function nameArguments(document: DocumentNode, errors: readonly GraphQLError[] | undefined): void {
  let known: ArgumentNode[] | undefined;
  for (const error of errors ?? []) {
    // Those of resolvers name their argument themselves, or are none of the client's business.
    if (error.extensions.code !== undefined || !isOfGraphql(error)) continue;
    known ??= argumentsIn(document);
    const argument = argumentOf(error, known);
    if (argument !== undefined) error.extensions.argument = argument;
    const [node] = error.nodes ?? [];
    if (node?.kind === Kind.VARIABLE_DEFINITION) error.extensions.variable = node.variable.name.value;
  }
}

const isOfGraphql = ({ originalError: cause }: GraphQLError): boolean =>
  cause === undefined || cause instanceof GraphQLError;

function argumentsIn(document: DocumentNode): ArgumentNode[] {
  const found: ArgumentNode[] = [];
  visit(document, { Argument: (node) => void found.push(node) });
  return found;
}

function argumentOf({ message, nodes }: GraphQLError, known: readonly ArgumentNode[]): string | undefined {
  // One that is missing has no place in the document.
  const [, missing] = /^(?:Field "[^"]*" argument|Argument) "(\w+)" /.exec(message) ?? [];
  if (missing !== undefined) return missing;
  const [node] = nodes ?? [];
  if (node?.kind === Kind.VARIABLE_DEFINITION) {
    const names = new Set(
      known.filter((argument) => uses(argument, node.variable.name.value)).map(({ name }) => name.value),
    );
    return names.size === 1 ? [...names][0] : undefined;
  }
  return known.find(({ loc }) => loc && node?.loc && loc.start <= node.loc.start && node.loc.end <= loc.end)
    ?.name.value;
}

function uses(argument: ArgumentNode, variable: string): boolean {
  let found = false;
  visit(argument, {
    Variable({ name }) {
      found ||= name.value === variable;
    },
  });
  return found;
}
