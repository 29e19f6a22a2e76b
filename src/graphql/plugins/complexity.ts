/**
 * Coerces the variables of an operation, and rejects one whose response may have too many fields (`complexity.ts`). Pothos' plugin
 * for complexity counts nothing beneath the schema's own fields and nothing beneath `first: 0` (docs/decisions/own-limits.md).
 */

import type { GraphQLError } from 'graphql';
import type { Config } from '../../config/config.ts';
import type { Values } from '../../schema/operation.ts';
import { complexityOf } from '../complexity.ts';
import type { CheckedOperation, GatewayPlugin } from '../context.ts';
import { type Documents, rejected } from '../documents.ts';
import { requestError, unreadableRequest } from '../overHttp.ts';
import { hasTooManyValues, isTooDeep, tooManyValues } from '../values.ts';

/** The coerced variables and the complexity of an operation, or the errors of its variables. */
type Measured =
  | { readonly variables: Values; readonly complexity: number }
  | { readonly errors: readonly GraphQLError[] };

export function measure(
  { schema }: Documents,
  { document, operation }: CheckedOperation,
  given: Values,
): Measured {
  if (isTooDeep(given)) return { errors: [unreadableRequest('The variables are nested too deeply')] };
  if (hasTooManyValues(given)) return { errors: [unreadableRequest(tooManyValues)] };
  const read = operation.coerce(given);
  if ('errors' in read) return rejected(read.errors);
  const complexity = complexityOf(schema, document.document, operation.node, read.coerced);
  return { variables: read.coerced, complexity };
}

export const tooComplex = (what: 'operation' | 'batch', complexity: number, most: number) =>
  `The ${what} has a complexity of ${complexity}; at most ${most} is allowed`;

export function useComplexity(
  { MAX_COMPLEXITY }: Pick<Config, 'MAX_COMPLEXITY'>,
  documents: Documents,
): GatewayPlugin {
  return {
    onParse({ context: { progress, params } }) {
      const { document, operation } = progress;
      if (!operation || !document || 'errors' in document) return;
      const measured = measure(documents, { document, operation }, params.variables ?? {});
      if ('errors' in measured) throw new AggregateError(measured.errors);
      progress.variables = measured.variables;
      const { complexity } = measured;
      if (complexity > MAX_COMPLEXITY)
        throw requestError(tooComplex('operation', complexity, MAX_COMPLEXITY));
    },
  };
}
