/** Makes a plugin of a check that queries, mutations and subscriptions have to pass before they are executed. */

import type { GraphQLError } from 'graphql';
import type { GatewayContext, GatewayPlugin } from '../context.ts';

/** @param check returns the errors of an operation that must not be executed. */
export const beforeExecution = (
  check: (context: GatewayContext) => readonly GraphQLError[],
): GatewayPlugin => ({
  onExecute({ context, setResultAndStopExecution }) {
    const errors = check(context);
    if (errors.length > 0) setResultAndStopExecution({ errors });
  },
  onSubscribe({ context, setResultAndStopExecution }) {
    const errors = check(context);
    if (errors.length > 0) setResultAndStopExecution({ errors });
  },
});
