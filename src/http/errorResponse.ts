/** Error responses, in the envelope of the API of the request. */

import { GraphQLError } from 'graphql';
import { isAway } from '../database/connection.ts';
import { codeOf, type ErrorCode, messages, retryAfterOf, statusOf, unserved } from '../errors.ts';
import type { Endpoint, Exchange } from './exchange.ts';
import { type HttpResponse, jsonResponse, textResponse } from './response.ts';

export interface HttpError {
  readonly message: string;
  readonly code: ErrorCode;
  /** The HTTP status, where it says more than that of the code. */
  readonly status?: number;
  /** In seconds: when the client may try again. */
  readonly retryAfter?: number | undefined;
}

export const httpErrors = {
  badRequest: { code: 'BAD_USER_INPUT', message: messages.badRequest },
  methodNotAllowed: { status: 405, code: 'BAD_USER_INPUT', message: messages.methodNotAllowed },
  tooSlow: { status: 408, code: 'BAD_USER_INPUT', message: messages.tooSlow },
  headersTooLarge: { status: 431, code: 'BAD_USER_INPUT', message: messages.headersTooLarge },
  tooBusy: { code: 'SERVICE_UNAVAILABLE', message: messages.tooBusy },
  internal: { code: 'INTERNAL_SERVER_ERROR', message: messages.internal },
} as const satisfies Record<string, HttpError>;

/** @param retryAfter in seconds. */
export const tooManyRequests = (retryAfter: number): HttpError => ({
  code: 'TOO_MANY_REQUESTS',
  message: messages.tooManyRequests,
  retryAfter,
});

export function errorResponse(
  endpoint: Endpoint,
  { message, code, status = statusOf[code], retryAfter }: HttpError,
  headers?: Record<string, string>,
): HttpResponse {
  if (endpoint === 'page') return textResponse(status, message, headers);
  if (endpoint === 'rest') return restErrorResponse(status, message, headers);
  const body =
    endpoint === 'graphql'
      ? { errors: [{ message, extensions: { code, retryAfter } }] }
      : endpoint.errorBody(message);
  return { ...jsonResponse(status, JSON.stringify(body), headers), errorCode: code };
}

/** The response to a failed request: the error, if it is meant for clients, or else a 500 whose error is logged. */
export function failureResponse({ endpoint, report }: Exchange, failure: unknown): HttpResponse {
  const error = isAway(failure) ? unserved('databaseAway') : failure;
  const code = error instanceof GraphQLError ? codeOf(error) : undefined;
  if (!(error instanceof GraphQLError) || !code) {
    report(error);
    return errorResponse(endpoint, httpErrors.internal);
  }
  const retryAfter = retryAfterOf(error);
  const headers = retryAfter === undefined ? {} : { 'Retry-After': String(retryAfter) };
  return errorResponse(endpoint, { code, message: error.message, retryAfter }, headers);
}

export function restErrorResponse(
  status: number,
  message: string,
  headers?: Record<string, string>,
): HttpResponse {
  return jsonResponse(status, JSON.stringify(restError(message)), headers);
}

/** The envelope around an error of the REST API. */
export const restError = (error: string) => ({ ok: false, error });
