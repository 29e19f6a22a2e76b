/** Adds the name of the argument or variable to errors of graphql-js, which only point into the document. */

import { type ArgumentNode, type DocumentNode, GraphQLError, Kind, visit } from 'graphql';
import { hasVariable } from './compiledDocument.ts';

/** Sets `extensions.argument` and `extensions.variable` of each error that graphql-js made, where they can be determined. */
export function nameArguments(document: DocumentNode, errors: readonly GraphQLError[] | undefined): void {
  let known: ArgumentNode[] | undefined;
  for (const error of errors ?? []) {
    // Client errors of resolvers name their argument already, and unexpected errors are masked.
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
  // A missing argument is nowhere in the document, so its name is read from the message.
  const [, missing] = /^(?:Field "[^"]*" argument|Argument) "(\w+)" /.exec(message) ?? [];
  if (missing !== undefined) return missing;
  const [node] = nodes ?? [];
  if (node?.kind === Kind.VARIABLE_DEFINITION) {
    const names = new Set(
      known
        .filter((argument) => hasVariable(argument.value, node.variable.name.value))
        .map(({ name }) => name.value),
    );
    return names.size === 1 ? [...names][0] : undefined;
  }
  return known.find(({ loc }) => loc && node?.loc && loc.start <= node.loc.start && node.loc.end <= loc.end)
    ?.name.value;
}
