/** Prepares operations as the gateway does, without a gateway. */

import { readConfig } from '../../src/config/config.ts';
import {
  createDocuments,
  createExecution,
  type Operation,
  type Rejected,
} from '../../src/graphql/execution.ts';
import { createPersistedOperations } from '../../src/graphql/persisted.ts';

interface Asked {
  readonly operationName?: string;
  readonly variables?: Readonly<Record<string, unknown>>;
}

/** A function that prepares the operation of a document by the given settings. */
export function preparing(
  settings: Record<string, string> = {},
): (query: string, asked?: Asked) => Operation | Rejected {
  const config = readConfig(settings);
  const documents = createDocuments(config);
  const persisted = createPersistedOperations({ config, file: { operations: new Map() } });
  const { prepare } = createExecution(config, documents, persisted);
  return (query, { operationName, variables = {} } = {}) =>
    prepare(
      { query, operationName, variables, extensions: undefined },
      {
        viewer: { id: 1, tokenId: 1, scope: 'manage' },
        authorization: undefined,
        hasExpiredToken: false,
        mayWrite: true,
      },
    );
}

/** The messages of the errors for which an operation is not executed; none if it may be. */
export const messagesOf = (prepared: Operation | Rejected): string[] =>
  'errors' in prepared ? prepared.errors.map(({ message }) => message) : [];
