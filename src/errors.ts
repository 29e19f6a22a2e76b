/** The errors that a client may see, in one table. Everything else is masked and logged. */

import { GraphQLError } from 'graphql';

/** The values of `extensions.code`, each with the HTTP status that the REST door answers. */
export const statusOf = {
  BAD_USER_INPUT: 400,
  UNAUTHENTICATED: 401,
  NOT_FOUND: 404,
  TOO_MANY_REQUESTS: 429,
  INTERNAL_SERVER_ERROR: 500,
  BAD_GATEWAY: 502,
} as const;

export type ErrorCode = keyof typeof statusOf;

export const messages = {
  unauthorized: 'Unauthorized',
  invalidId: 'Invalid ID',
  notFound: 'Not found',
  templateNotOwned: 'Template not found or not owned by user',
  activationBody: 'Request body must include { isActive: true }',
  limit: 'limit must be an integer from 1 to 100',
  offset: 'offset must be an integer of at least 0',
  methodNotAllowed: 'Method not allowed',
  bodyTooLarge: 'Request body too large',
  tooManyRequests: 'Too many requests',
  internal: 'Internal server error',
  upstreamAway: 'The upstream cannot be reached; nothing was changed here',
  upstreamUnusable: 'The upstream cannot be used; nothing was changed here',
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
