/**
 * The rules about every operation, each a plugin of Yoga, in their order: its document, its scope, its complexity, its execution, and
 * what the log has of its errors.
 */

import { type ExecutionResult, type GraphQLError, OperationTypeNode } from 'graphql';
import { isAsyncIterable } from 'graphql-yoga';
import { allows } from '../../auth/scopes.ts';
import type { Config } from '../../config/config.ts';
import { beyondScope, hiddenIn } from '../../errors.ts';
import type { PreparedOperation, Values } from '../../schema/operation.ts';
import type { GatewayContext, GatewayPlugin, RequestContext } from '../context.ts';
import { type CheckedDocument, type Documents, noOperation, rejected } from '../documents.ts';
import { complexityOf, hasTooManyValues, isTooDeep, tooManyValues } from '../limits.ts';
import { type Errors, errorCodeOf, requestError, unreadableRequest, withoutToken } from '../overHttp.ts';

/**
 * Gives Yoga the cached document of a request, or throws the errors of one that cannot be run. Yoga's own cache has no bound in bytes, and no
 * limits on what is parsed; GraphQL Armor words its limits as syntax errors (docs/decisions/own-limits.md).
 */
export const useDocuments = (documents: Documents): GatewayPlugin => ({
  onParse({ params, context, setParsedDocument }) {
    const { exchange, viewer, progress } = context;
    const text = String(params.source);
    const document = viewer ? documents.read(text) : documents.readAnonymous(text);
    if (!document) throw withoutToken(exchange);
    if ('errors' in document) throw new AggregateError(document.errors);
    progress.document = document;
    progress.operation = operationOf(document, context);
    setParsedDocument(document.document);
  },

  // It has been validated.
  onValidate: ({ setResult }) => setResult([]),
});

function operationOf(
  document: CheckedDocument,
  { exchange, params, expected = OperationTypeNode.QUERY }: GatewayContext,
): PreparedOperation {
  // An empty name counts as none.
  const name = params.operationName || undefined;
  const operation = document.operation(name);
  if (!operation) throw requestError(noOperation(document.document, name));
  // The pipeline shares and caches results by the type of the operation that was sent.
  if (operation.type !== expected) throw new Error(`a plugin has made a ${operation.type} of a ${expected}`);
  exchange.operation = operation.label;
  return operation;
}

/** Rejects an operation beyond the scope of its token, before anything of it runs. */
export const useScopes = (): GatewayPlugin => ({
  onParse({ context: { viewer, progress } }) {
    const { scope = 'read' } = progress.operation ?? {};
    // Every token may read.
    if (scope !== 'read' && viewer && !allows(viewer.scope, scope))
      throw beyondScope(scope, viewer.tokenId === undefined);
  },
});

/** The coerced variables and the complexity of an operation, or the errors for which it is not executed. */
type Measured =
  | { readonly variables: Values; readonly complexity: number }
  | { readonly errors: readonly GraphQLError[] };

export function measure(
  { MAX_COMPLEXITY: most }: Pick<Config, 'MAX_COMPLEXITY'>,
  { schema }: Documents,
  { document }: CheckedDocument,
  operation: PreparedOperation,
  given: Values,
): Measured {
  if (isTooDeep(given)) return { errors: [unreadableRequest('The variables are nested too deeply')] };
  if (hasTooManyValues(given)) return { errors: [unreadableRequest(tooManyValues)] };
  const read = operation.coerce(given);
  if ('errors' in read) return rejected(read.errors);
  const complexity = complexityOf(schema, document, operation.node, read.coerced);
  if (complexity > most)
    return rejected([
      requestError(`The operation has a complexity of ${complexity}; at most ${most} is allowed`),
    ]);
  return { variables: read.coerced, complexity };
}

/**
 * Coerces the variables of an operation, and rejects one whose response may have too many fields. Pothos' plugin for complexity counts
 * nothing beneath the schema's own fields and nothing beneath `first: 0` (docs/decisions/own-limits.md).
 */
export function useComplexity(config: Pick<Config, 'MAX_COMPLEXITY'>, documents: Documents): GatewayPlugin {
  return {
    onParse({ context: { progress, params } }) {
      const { document, operation } = progress;
      if (!operation || !document) return;
      const measured = measure(config, documents, document, operation, params.variables ?? {});
      if ('errors' in measured) throw new AggregateError(measured.errors);
      progress.variables = measured.variables;
    },
  };
}

/** How many errors a response has at most: as many as a page has records. A failing field often fails for each record of a list. */
const mostErrors = 100;

/** Executes operations by what was prepared once for each: compiled code, or graphql-js (`schema/operation.ts`). */
export const usePreparedExecution = (): GatewayPlugin => ({
  onExecute({ context, setExecuteFn }) {
    const { operation, variables } = context.progress;
    if (operation && variables)
      setExecuteFn(async () => errorsFirst(await operation.execute(variables, context)));
  },
});

/** The result in the order in which it is written, without errors beyond the limit. */
const errorsFirst = ({ errors, ...others }: ExecutionResult): ExecutionResult =>
  errors ? { errors: errors.slice(0, mostErrors), ...others } : others;

/** Logs the hidden errors of a result, and keeps its code for the log. */
export function noteErrors(result: Errors, { exchange, progress }: RequestContext): void {
  const { errors = [] } = result;
  progress.errorCode = errorCodeOf(result);
  for (const error of errors) {
    const hidden = hiddenIn(error);
    if (hidden !== undefined) exchange.report(hidden);
  }
}

/** Logs what clients do not get to see: the causes of the errors that Yoga has masked. */
export const useErrorLog = (): GatewayPlugin => ({
  onResultProcess({ result, serverContext }) {
    // Yoga's type has lists of results, for batches, which are not run.
    if (!isAsyncIterable(result) && !Array.isArray(result)) noteErrors(result, serverContext);
  },
});
