/** Results as clients may see them. */

import { type ExecutionResult, GraphQLError } from 'graphql';
import { type ExecutionError, errorForClient } from '../errors.ts';

/** Told of every error that is hidden from the client. */
export type Report = (error: unknown) => void;

/** How many errors a response has at most: as many as a page has records. */
const mostErrors = 100;

/** The errors that a response may have. The others are left out, as long lists of records would each have the same. */
export const firstErrors = <Each extends ExecutionError>(errors: readonly Each[]): readonly Each[] =>
  errors.slice(0, mostErrors);

/** Lets through the errors that are meant for clients, with their codes, and masks all others. */
export function forClient(result: ExecutionResult, report: Report): ExecutionResult {
  if (!result.errors) return result;
  const errors = firstErrors(result.errors).map((error) => {
    const { message, extensions } = errorForClient(error, report);
    // A syntax error has no nodes, but a place in the text.
    const { nodes = null, source = null, positions = null, path = null } = error;
    return new GraphQLError(message, { nodes, source, positions, path, extensions });
  });
  return { ...result, errors };
}
