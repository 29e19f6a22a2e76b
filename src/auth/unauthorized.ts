/** The 401 of the REST API. */

import { problemOf } from '../auth/viewer.ts';
import { challengeFor, messages } from '../errors.ts';
import { restErrorResponse } from '../http/errorResponse.ts';
import type { Exchange } from '../http/exchange.ts';
import type { HttpResponse } from '../http/response.ts';

/** The response to a request without a valid token. */
export function unauthorized({ request: { headers }, hasExpiredToken }: Exchange): HttpResponse {
  const problem = problemOf(headers.authorization, hasExpiredToken);
  return restErrorResponse(401, messages.unauthorized, challengeFor(problem));
}
