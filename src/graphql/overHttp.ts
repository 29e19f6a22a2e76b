/**
 * GraphQL over HTTP, around an operation: reads the parameters of a request, makes the errors of requests that are not run, and
 * makes responses with their media types and statuses.
 */

import { type ExecutionResult, type FormattedExecutionResult, GraphQLError } from 'graphql';
import { LRUCache } from 'lru-cache';
import { problemOf } from '../auth/viewer.ts';
import {
  challengeFor,
  type ErrorCode,
  type ExecutionError,
  errorForClient,
  unauthorizedMessage,
} from '../errors.ts';
import { errorResponse } from '../http/errorResponse.ts';
import type { Exchange } from '../http/exchange.ts';
import { isRecord, parseJson } from '../http/json.ts';
import { acceptedOf } from '../http/request.ts';
import { type HttpResponse, jsonResponse } from '../http/response.ts';
import type { Values } from '../schema/compile.ts';
import { type StreamType, streamTypeFor } from './transports/streams.ts';

/** A well-formed request. It sends the text of its document, or names it in one of two ways. */
export interface OperationRequest {
  readonly query: string | null | undefined;
  readonly documentId?: unknown;
  readonly operationName: string | undefined;
  readonly variables: Values;
  readonly extensions: Values | undefined;
}

const parameters = new Set(['query', 'documentId', 'operationName', 'variables', 'extensions']);

/** A request, or the error of a request that is not well-formed. */
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
 * The JSON text of a value that was read from JSON; no other value has the same text. Undefined for a value that is too deep to be
 * written, or has a number such as 1e999, which is read as `Infinity` and written as null.
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

/** An error of the request as a whole. */
export function requestError(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'BAD_USER_INPUT', http: badRequest } });
}

/** An error of a request that cannot be read. Its status is 400 for every accepted media type. */
export function unreadableRequest(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'BAD_USER_INPUT', http: { status: 400 } } });
}

/** The response to a request that is rejected before its operation. */
export function requestFailure(
  status: number,
  message: string,
  headers?: Record<string, string>,
  code: ErrorCode = 'BAD_USER_INPUT',
): HttpResponse {
  return errorResponse('graphql', { status, code, message }, headers);
}

/** The response to a request without a valid token, which says what is wrong with it. */
export function unauthorizedFailure({ endpoint, request, hasExpiredToken }: Exchange): HttpResponse {
  const problem = problemOf(request.headers.authorization, hasExpiredToken);
  const message = unauthorizedMessage(problem);
  return errorResponse(endpoint, { code: 'UNAUTHENTICATED', message }, challengeFor(problem));
}

/** Called with every error that is hidden from the client. */
type Report = (error: unknown) => void;

/** The request headers on which a response depends. */
export const vary = 'Authorization, Accept';

/** How many errors a response has at most: as many as a page has records. A failing field often fails for each record of a list. */
const mostErrors = 100;

/** Lets through the errors that are meant for clients, with their codes, and masks all others. */
export function forClient({ data, errors }: ExecutionResult, report: Report): FormattedExecutionResult {
  return {
    ...(errors && { errors: errors.slice(0, mostErrors).map((error) => errorForClient(error, report)) }),
    ...(data !== undefined && { data }),
  };
}

/** The response that has the result, as JSON. */
export function responseOf(result: ExecutionResult, type: WholeType, report: Report): HttpResponse {
  const shown = forClient(result, report);
  const [first] = shown.errors ?? [];
  const { status, headers } = httpOf(result, type);
  const response = jsonResponse(status, JSON.stringify(shown), {
    'Content-Type': `${type}; charset=utf-8`,
    'Cache-Control': 'no-store',
    Vary: vary,
    ...headers,
  });
  return { ...response, ...(first && { errorCode: String(first.extensions?.code) }) };
}

/** What an error says about the status of the whole response. */
interface ErrorHttp {
  readonly status: number;
  /** Whether clients that accept only `application/json` get a 200 all the same. */
  readonly spec?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The status and the headers of a response: the highest status that one of the errors has. */
function httpOf({ errors = [] }: ExecutionResult, type: WholeType) {
  let status = 200;
  let headers: ErrorHttp['headers'] = {};
  // Errors of compiled code may have no extensions.
  for (const { extensions } of errors as readonly ExecutionError[]) {
    // Only `errors.ts` and the functions above set it.
    const http = extensions?.http as ErrorHttp | undefined;
    if (!http) continue;
    headers = { ...headers, ...http.headers };
    if (!(http.spec && type === jsonType)) status = Math.max(status, http.status);
  }
  return { status, headers };
}

export const jsonType = 'application/json';

/** GraphQL over HTTP, section 4.2. */
export const graphqlType = 'application/graphql-response+json';

/** The media types of a response that has one result. */
const wholeTypes = [jsonType, graphqlType] as const;

type WholeType = (typeof wholeTypes)[number];
/** The response to a query or mutation can also be a stream with one result. */
export type ResultType = WholeType | StreamType;

export const isWholeType = (type: ResultType): type is WholeType => type === jsonType || type === graphqlType;

/** The media types of subscriptions, as error messages name them. */
const streamingTypes = 'text/event-stream or multipart/mixed;subscriptionSpec=1.0';

export const notAcceptable = `Accept must name ${graphqlType} or ${jsonType} for a query or mutation, ${streamingTypes} for a subscription`;

/** Caches the types by the `Accept` header, of which clients send few different ones. */
const knownTypes = new LRUCache<string, { type: ResultType | undefined }>({ max: 100 });

/**
 * The media type of the response to a query or mutation; undefined where the client accepts none. It is decided before the
 * operation runs. A client that accepts a whole response never gets a stream, even if it prefers one: Apollo Client names the
 * stream for subscriptions before all other types.
 */
export function resultTypeFor(accept = ''): ResultType | undefined {
  const found = knownTypes.get(accept);
  if (found) return found.type;
  const [whole] = acceptedOf(wholeTypes, accept);
  const type = whole ?? streamTypeFor(accept);
  knownTypes.set(accept, { type });
  return type;
}
