/**
 * Reads the parameters of a request for an operation (GraphQL over HTTP, section 5), which are passed on as they were read. Has the
 * errors about a request as a whole, as opposed to one of its fields: nothing of such a request is run.
 */

import type { IncomingMessage } from 'node:http';
import { GraphQLError } from 'graphql';
import { problemOf } from '../auth/viewer.ts';
import { challengeFor, type ErrorCode, unauthorizedMessage } from '../errors.ts';
import { errorResponse } from '../http/errorResponse.ts';
import { isRecord, parseJson } from '../http/json.ts';
import type { HttpResponse } from '../http/response.ts';
import type { Values } from '../schema/compiledDocument.ts';

/** A well-formed request. It sends the text of its document, or names it in one of two ways. */
export interface OperationRequest {
  readonly query: string | null | undefined;
  readonly documentId?: unknown;
  readonly operationName: string | undefined;
  readonly variables: Values;
  readonly extensions: Values | undefined;
}

const parameters = new Set(['query', 'documentId', 'operationName', 'variables', 'extensions']);

/** A request, or what is wrong with one that is not well-formed. */
export type ReadRequest = OperationRequest | GraphQLError;

export function readRequest(given: unknown): ReadRequest {
  if (!isRecord(given)) return unreadableRequest('A request must be an object with a query, in JSON');
  for (const name in given)
    if (given[name] !== null && !parameters.has(name))
      return unreadableRequest(`There is no parameter ${JSON.stringify(name.slice(0, 100))}`);
  const { query, documentId, operationName, variables, extensions } = given;
  if (query != null && typeof query !== 'string') return unreadableRequest('query must be a string');
  if (operationName != null && typeof operationName !== 'string')
    return unreadableRequest('operationName must be a string');
  if (variables != null && !isRecord(variables)) return unreadableRequest('variables must be an object');
  if (extensions != null && !isRecord(extensions)) return unreadableRequest('extensions must be an object');
  return {
    query,
    documentId,
    operationName: operationName ?? undefined,
    variables: variables ?? {},
    extensions: extensions ?? undefined,
  };
}

/** The request in the target of a GET. Other parameters may stand beside those of GraphQL. */
export function readTarget(target: string): ReadRequest {
  const given = new URLSearchParams(target.split(/\?(.*)/s)[1]);
  // An empty parameter counts as none.
  const textOf = (name: string) => given.get(name) || undefined;
  const [variables, extensions] = ['variables', 'extensions'].map((name) =>
    parseJson(textOf(name) ?? 'null'),
  );
  if (variables === undefined || extensions === undefined)
    return unreadableRequest('variables and extensions must be JSON');
  return readRequest({
    query: textOf('query'),
    documentId: given.get('documentId'),
    operationName: textOf('operationName'),
    variables,
    extensions,
  });
}

/** How many levels the values of variables may have: many more than a filter may. */
const deepestValue = 64;

/** Whether values have too many levels. Functions that read them call themselves for each level, and run out of stack. */
export function isTooDeep(value: unknown, depth = 0): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return depth > deepestValue || Object.values(value).some((each) => isTooDeep(each, depth + 1));
}

/** The same for a whole request, in which the values of variables are one level further down. */
export const isRequestTooDeep = (request: unknown): boolean => isTooDeep(request, -1);

/** How many values variables may have. Reading one takes up to 10 µs. */
const mostValues = 5_000;
export const tooManyValues = `The variables have more than ${mostValues} values; at most ${mostValues} are allowed`;

/** Whether there are more than `most` values. Those within lists and objects count as well. */
export function hasTooManyValues(values: unknown, most = mostValues): boolean {
  const open = [values];
  let count = 0;
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value !== 'object' || value === null) continue;
    const within = Object.values(value);
    count += within.length;
    if (count > most) return true;
    for (const each of within) open.push(each);
  }
  return false;
}

/**
 * The JSON text that names a value which was read from JSON, and names no other. Undefined where there is none: of values that are
 * too deep to be written, and of numbers such as 1e999, which are read as `Infinity` and written as null.
 */
export function exactText(value: unknown): string | undefined {
  if (isRequestTooDeep(value)) return undefined;
  let isExact = true;
  const text = JSON.stringify(value, (_name, each) => {
    if (each === Number.POSITIVE_INFINITY || each === Number.NEGATIVE_INFINITY) isExact = false;
    return each;
  });
  return isExact ? text : undefined;
}

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
