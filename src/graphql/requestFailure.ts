/** Errors about a request as a whole, as opposed to one of its fields: nothing of such a request is run. */

import type { IncomingMessage } from 'node:http';
import { GraphQLError } from 'graphql';
import { problemOf } from '../auth/viewer.ts';
import { challengeFor, type ErrorCode, unauthorizedMessage } from '../errors.ts';
import { errorResponse } from '../http/errorResponse.ts';
import type { HttpResponse } from '../http/response.ts';

/**
 * The status of a request that can be read but not run. By `spec`, clients that accept only `application/json` get a 200
 * (GraphQL over HTTP, section 6.4.1).
 */
export const badRequest = { status: 400, spec: true };

/** An error of the request as a whole, which says what the request would have to be. */
export function requestError(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'BAD_USER_INPUT', http: badRequest } });
}

/** An error of a request that cannot be understood: a 400 whatever media type the client accepts. */
export function unreadableRequest(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'BAD_USER_INPUT', http: { status: 400 } } });
}

/** A response to a request that does not get as far as its operation. */
export function requestFailure(
  status: number,
  message: string,
  headers?: Record<string, string>,
  code: ErrorCode = 'BAD_USER_INPUT',
): HttpResponse {
  return errorResponse('graphql', { status, code, message }, headers);
}

/** The response to a request without a valid token, which says what is wrong with it. */
export function unauthorizedFailure({ headers }: IncomingMessage): HttpResponse {
  const problem = problemOf(headers.authorization);
  return requestFailure(401, unauthorizedMessage(problem), challengeFor(problem), 'UNAUTHENTICATED');
}

/** The response to a request for more of something than may be open at once. */
export const tooManyFailure = (message: string): HttpResponse =>
  requestFailure(429, message, { 'Retry-After': '1' }, 'TOO_MANY_REQUESTS');
