/** Executes operations by what was prepared once for each: compiled code, or graphql-js (`schema/operation.ts`). */

import type { ExecutionResult } from 'graphql';
import type { GatewayPlugin } from '../context.ts';

/** How many errors a response has at most: as many as a page has records. A failing field often fails for each record of a list. */
const mostErrors = 100;

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
