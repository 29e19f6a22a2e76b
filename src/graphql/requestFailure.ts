/** Error responses to requests that are not well-formed requests for an operation. */

import type { ErrorCode } from '../errors.ts';
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
