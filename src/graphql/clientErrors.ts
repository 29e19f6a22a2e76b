/** Makes results of executions what clients may see. */

import { type ExecutionResult, GraphQLError } from 'graphql';
import { type ExecutionError, errorForClient } from '../errors.ts';

/** Is told of every error that is hidden from the client. */
export type Report = (error: unknown) => void;

/** How many errors a response has at most: as many as a page has records. */
const mostErrors = 100;

/** As many errors as a response may have. Where a field fails, it often does for every record of a list. */
export const firstErrors = <Each extends ExecutionError>(errors: readonly Each[]): readonly Each[] =>
  errors.slice(0, mostErrors);

/** Lets through the errors that are meant for clients, with their codes, and masks all others. */
export function forClient(result: ExecutionResult, report: Report): ExecutionResult {
  if (!result.errors) return result;
  const errors = firstErrors(result.errors).map((error) => {
    const { message, extensions } = errorForClient(error, report);
    // A syntax error has no nodes, but a source and positions.
    const { nodes = null, source = null, positions = null, path = null } = error;
    return new GraphQLError(message, { nodes, source, positions, path, extensions });
  });
  return { ...result, errors };
}
