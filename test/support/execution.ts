/** Checks operations as the gateway does, without a gateway. */

import { GraphQLError } from 'graphql';
import { readConfig } from '../../src/config/config.ts';
import { createDocuments, noOperation } from '../../src/graphql/documents.ts';
import { measure } from '../../src/graphql/plugins/operation.ts';

interface Asked {
  readonly operationName?: string;
  readonly variables?: Readonly<Record<string, unknown>>;
}

/** The complexity of an operation, or the errors for which it is not executed. */
type Checked = { readonly complexity: number } | { readonly errors: readonly GraphQLError[] };

/** A function that checks the operation of a document by the given settings. */
export function preparing(settings: Record<string, string> = {}): (query: string, asked?: Asked) => Checked {
  const config = readConfig(settings);
  const documents = createDocuments(config);
  return (query, { operationName, variables = {} } = {}) => {
    const document = documents.read(query);
    if ('errors' in document) return document;
    const operation = document.operation(operationName);
    if (!operation) return { errors: [new GraphQLError(noOperation(document.document, operationName))] };
    return measure(config, documents, document, operation, variables);
  };
}

/** The messages of the errors for which an operation is not executed; none if it may be. */
export const messagesOf = (checked: Checked): string[] =>
  'errors' in checked ? checked.errors.map(({ message }) => message) : [];
