/** Error responses to requests that are not well-formed requests for an operation. */

import type { IncomingMessage } from 'node:http';
import { problemOf } from '../auth/viewer.ts';
import { challengeFor, type ErrorCode, unauthorizedMessage } from '../errors.ts';
import { errorResponse } from '../http/errorResponse.ts';
import type { HttpResponse } from '../http/response.ts';

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
