/** The errors that a client may see, in one table. Everything else is masked and logged. */

import { GraphQLError } from 'graphql';

/** The values of `extensions.code`, each with the HTTP status that the REST door answers. */
export const statusOf = {
  BAD_USER_INPUT: 400,
  UNAUTHENTICATED: 401,
  NOT_FOUND: 404,
  TOO_MANY_REQUESTS: 429,
  INTERNAL_SERVER_ERROR: 500,
} as const;

export type ErrorCode = keyof typeof statusOf;

export const messages = {
  unauthorized: 'Unauthorized',
  invalidId: 'Invalid ID',
  notFound: 'Not found',
  templateNotOwned: 'Template not found or not owned by user',
  limit: 'limit must be an integer from 1 to 100',
  offset: 'offset must be an integer of at least 0',
  methodNotAllowed: 'Method not allowed',
  bodyTooLarge: 'Request body too large',
  tooManyRequests: 'Too many requests',
  internal: 'Internal server error',
} as const;

/**
 * An error meant for the client. Its message reaches them through either door.
 * Only a missing token decides the status of a whole GraphQL answer; other errors belong to their field.
 */
export function clientError(code: ErrorCode, message: string): GraphQLError {
  const http =
    code === 'UNAUTHENTICATED'
      ? { status: statusOf[code], headers: { 'WWW-Authenticate': 'Bearer' } }
      : undefined;
  return new GraphQLError(message, { extensions: { code, ...(http && { http }) } });
}

/** The code of an error made by `clientError`, or undefined for one that no client may see. */
export function codeOf(error: { extensions: Record<string, unknown> }): ErrorCode | undefined {
  const { code } = error.extensions;
  return typeof code === 'string' && Object.hasOwn(statusOf, code) ? (code as ErrorCode) : undefined;
}

/** The error as a client may see it: as it is if it is meant for them, masked and reported if it is not. */
export function errorForClient(error: GraphQLError, onHidden: (error: unknown) => void): GraphQLError {
  if (codeOf(error)) return error;
  if (isAboutRequest(error)) return recoded(error, 'BAD_USER_INPUT', error.message);
  onHidden(error.originalError ?? error);
  return recoded(error, 'INTERNAL_SERVER_ERROR', messages.internal);
}

/**
 * Whether the request itself is at fault: its syntax, its fields, its variables or its arguments. GraphQL reports
 * these by errors of its own, some of which wrap others. Those without a path were found before a resolver ran;
 * those that were found later point at the argument in the document, which no error out of a resolver does.
 */
function isAboutRequest(error: GraphQLError): boolean {
  let cause: Error = error;
  while (cause instanceof GraphQLError && cause.originalError) cause = cause.originalError;
  return cause instanceof GraphQLError && (!error.path || cause.nodes !== undefined);
}

function recoded(error: GraphQLError, code: ErrorCode, message: string): GraphQLError {
  const { nodes = null, path = null, extensions } = error;
  // Yoga reads the HTTP status of the whole answer from `http`.
  const http = extensions?.http;
  return new GraphQLError(message, {
    nodes,
    path,
    extensions: { code, ...(http !== undefined && { http }) },
  });
}
