/** Logs what clients do not get to see: the causes of the errors that Yoga has masked. */

import { isAsyncIterable } from 'graphql-yoga';
import { hiddenIn } from '../../errors.ts';
import type { GatewayPlugin, RequestContext } from '../context.ts';
import { type Errors, errorCodeOf } from '../overHttp.ts';

/** Logs the hidden errors of a result, and keeps its code for the log. */
export function noteErrors(result: Errors, { exchange, progress }: RequestContext): void {
  const { errors = [] } = result;
  progress.errorCode = errorCodeOf(result);
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
