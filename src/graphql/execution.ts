/**
 * The one way to execute operations: those of POST and GET, of batches, WebSockets, subscriptions and tools. A document is parsed,
 * checked against the limits and validated once, as long as it is cached. The variables are coerced once, for the limits and
 * for the execution. The operation is executed exactly once, with or without success.
 *
 * May be replaced by `parse`, `validate` and `execute` of graphql-js, in that order, without the limits, the caches and the
 * speed.
 */

import { type ExecutionResult, GraphQLError, OperationTypeNode } from 'graphql';
import { allows } from '../auth/scopes.ts';
import { problemOf, type Viewer } from '../auth/viewer.ts';
import type { Config } from '../config/config.ts';
import { beyondScope, unauthenticated } from '../errors.ts';
import type { PreparedOperation } from '../schema/compile.ts';
import type { Context } from '../schema/context.ts';
import { complexityOf, complexityOfTools } from './complexity.ts';
import { type CheckedDocument, type Documents, invalid, noOperation, type Rejected } from './documents.ts';
import {
  hasTooManyValues,
  isTooDeep,
  type OperationRequest,
  type ReadRequest,
  requestError,
  tooManyValues,
  unreadableRequest,
} from './overHttp.ts';
import type { PersistedOperations } from './persisted.ts';

/** The client of an operation. */
export interface Client {
  /** Null for an anonymous client, which may ask for nothing but the schema. */
  readonly viewer: Viewer | null;
  /** The header `Authorization`: it tells why there is no viewer. */
  readonly authorization: string | undefined;
  /** Whether the token there has expired. */
  readonly hasExpiredToken: boolean;
  /** Whether the request may write, unlike a GET. */
  readonly mayWrite: boolean;
}

/** An operation with its variables, ready to be executed. */
export interface Operation extends Pick<PreparedOperation, 'type' | 'label' | 'readsTokens'> {
  readonly request: OperationRequest;
  readonly complexity: number;
  /** The text of its document. */
  readonly text: string;
  /** Executes it. Errors are in the result. */
  execute(context: Context | undefined): Promise<ExecutionResult>;
}

export type Execution = ReturnType<typeof createExecution>;

export function createExecution(
  { MAX_COMPLEXITY }: Pick<Config, 'MAX_COMPLEXITY'>,
  documents: Documents,
  persisted: PersistedOperations,
) {
  const { schema } = documents;
  /** The highest complexity for anonymous clients. Computed with their first request. */
  let maxAnonymous: number | undefined;

  function maxFor(viewer: Viewer | null): number {
    if (viewer) return MAX_COMPLEXITY;
    maxAnonymous ??= Math.min(MAX_COMPLEXITY, 2 * complexityOfTools(schema));
    return maxAnonymous;
  }

  function findDocument(request: OperationRequest, client: Client): CheckedDocument | Rejected {
    const { viewer } = client;
    const text = persisted.find(request, viewer);
    // Anonymous clients are not told which operations are persisted, nor that only those are run.
    if (!viewer && text !== request.query) return withoutToken(client);
    if (text instanceof GraphQLError) return { errors: [text] };
    if (text === undefined) return { errors: [unreadableRequest('Must provide query string.')] };
    if (!viewer) return documents.readAnonymous(text) ?? withoutToken(client);
    const document = documents.read(text);
    if (!('errors' in document)) persisted.register(request, viewer);
    return document;
  }

  return {
    /** Finds the operation of a request, and checks that it may be executed. */
    prepare(request: ReadRequest, client: Client): Operation | Rejected {
      if (request instanceof GraphQLError) return { errors: [request] };
      const found = findDocument(request, client);
      if ('errors' in found) return found;
      const operation = found.operation(request.operationName);
      if (!operation) return { errors: [requestError(noOperation(found.document, request.operationName))] };
      const { type, label, node, coerce, execute, readsTokens } = operation;
      if (type === OperationTypeNode.MUTATION && !client.mayWrite) return { errors: [mutationByRead] };
      if (client.viewer && !allows(client.viewer.scope, operation.scope))
        return { errors: [beyondScope(operation.scope, client.viewer.tokenId === undefined)] };
      if (isTooDeep(request.variables))
        return { errors: [unreadableRequest('The variables are nested too deeply')] };
      if (hasTooManyValues(request.variables)) return { errors: [unreadableRequest(tooManyValues)] };
      const variables = coerce(request.variables);
      if ('errors' in variables) return invalid(variables.errors);
      const { coerced } = variables;
      const complexity = complexityOf(schema, found.document, node, coerced);
      const most = maxFor(client.viewer);
      if (!(complexity <= most)) return { errors: [requestError(tooComplex('operation', complexity, most))] };
      const run: Operation['execute'] = (context) => execute(coerced, context);
      return { request, type, label, complexity, text: found.text, readsTokens, execute: run };
    },
  };
}

export const tooComplex = (what: 'operation' | 'batch', complexity: number, most: number) =>
  `The ${what} has a complexity of ${complexity}; at most ${most} is allowed`;

const withoutToken = ({ authorization, hasExpiredToken }: Client): Rejected => ({
  errors: [unauthenticated(problemOf(authorization, hasExpiredToken))],
});

const mutationByRead = new GraphQLError('Can only perform a mutation operation from a POST request.', {
  extensions: { code: 'BAD_USER_INPUT', http: { status: 405, headers: { Allow: 'POST' } } },
});
