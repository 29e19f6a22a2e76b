/** The 401 of every API. */

import { challengeFor, messages, unauthorizedMessage } from '../errors.ts';
import { errorResponse } from '../http/errorResponse.ts';
import type { Exchange } from '../http/exchange.ts';
import type { HttpResponse } from '../http/response.ts';
import { problemOf } from './viewer.ts';

/** The response to a request without a valid token. All but the REST API have a message that says what is wrong with it. */
export function unauthorized({ endpoint, request, hasExpiredToken }: Exchange): HttpResponse {
  const problem = problemOf(request.headers.authorization, hasExpiredToken);
  const message = endpoint === 'rest' ? messages.unauthorized : unauthorizedMessage(problem);
  return errorResponse(endpoint, { code: 'UNAUTHENTICATED', message }, challengeFor(problem));
}
