/** Logs what clients do not get to see: the causes of the errors that Yoga has masked. */

import type { ExecutionResult } from 'graphql';
import { isAsyncIterable } from 'graphql-yoga';
import { hiddenIn } from '../../errors.ts';
import type { GatewayPlugin, RequestContext } from '../context.ts';

/** Logs the hidden errors of a result, and keeps the code of the first error for the log. */
export function noteErrors({ errors = [] }: ExecutionResult, { exchange, progress }: RequestContext): void {
  const [first] = errors;
  if (first) progress.errorCode = String(first.extensions.code);
  for (const error of errors) {
    const hidden = hiddenIn(error);
    if (hidden !== undefined) exchange.report(hidden);
  }
}

export const useErrorLog = (): GatewayPlugin => ({
  onResultProcess({ result, serverContext }) {
    // Batches do not come here.
    if (!isAsyncIterable(result) && !Array.isArray(result)) noteErrors(result, serverContext);
  },
});
