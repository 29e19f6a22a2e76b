/**
 * GraphQL over HTTP, around Yoga: the errors of requests that are not run, the media types of responses, and the response that has a
 * result.
 */

import type { ExecutionResult } from 'graphql';
import { GraphQLError } from 'graphql';
import { type FetchAPI, processRegularResult } from 'graphql-yoga';
import { LRUCache } from 'lru-cache';
import { problemOf } from '../auth/viewer.ts';
import { type ExecutionError, unauthenticated } from '../errors.ts';
import { errorResponse } from '../http/errorResponse.ts';
import type { Exchange } from '../http/exchange.ts';
import { acceptedOf } from '../http/request.ts';
import { type HttpResponse, jsonResponse } from '../http/response.ts';

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
): HttpResponse {
  return errorResponse('graphql', { status, code: 'BAD_USER_INPUT', message }, headers);
}

/** The error of an anonymous client that asks for more than the schema. */
export const withoutToken = ({ request, hasExpiredToken }: Exchange): GraphQLError =>
  unauthenticated(problemOf(request.headers.authorization, hasExpiredToken));

/** The request headers on which a response depends. */
export const vary = 'Authorization, Accept';

/** The body, the status and the headers that Yoga would hand to a `Response` of Fetch, which takes several times as long to make. */
class Written {
  readonly text: string;
  readonly init: { readonly status: number; readonly headers: Readonly<Record<string, string>> };

  constructor(text: string, init: Written['init']) {
    this.text = text;
    this.init = init;
  }
}
// Yoga's writer of results uses nothing else of Fetch.
const writing = { Response: Written } as unknown as FetchAPI;

const written = (result: ExecutionResult, type: WholeType) =>
  processRegularResult(result, writing, type) as unknown as Written;

/** The JSON of a result, as Yoga writes it. */
export const textOf = (result: ExecutionResult): string => written(result, jsonType).text;

/** The status and the headers of a response that has the result, as Yoga gives them by its errors. */
export const initOf = (result: ExecutionResult): Written['init'] => written(result, jsonType).init;

/** Gives a result its text, which need not be made again. */
export const withText = (result: ExecutionResult, text: string): ExecutionResult =>
  Object.defineProperty(result, 'stringify', { value: () => text });

/** The code of the first error of a result; undefined without errors. Errors of other plugins may have none. */
export function errorCodeOf({ errors: [first] = [] }: Errors): string | undefined {
  return first && String(first.extensions?.code ?? 'INTERNAL_SERVER_ERROR');
}

/** What a result may have of errors, also one of other plugins. */
export interface Errors {
  readonly errors?: readonly ExecutionError[] | undefined;
}

/** The response that has the result as JSON, as Yoga writes it. */
export function responseOf(result: ExecutionResult, type: WholeType): HttpResponse {
  const { text, init } = written(result, type);
  const response = jsonResponse(init.status, text, {
    'Cache-Control': 'no-store',
    Vary: vary,
    ...init.headers,
  });
  return result.errors ? { ...response, errorCode: errorCodeOf(result) } : response;
}

export const jsonType = 'application/json';

/** GraphQL over HTTP, section 4.2. */
export const graphqlType = 'application/graphql-response+json';

/** The media types of a response that has one result. */
const wholeTypes = [jsonType, graphqlType] as const;
export type WholeType = (typeof wholeTypes)[number];

/** The media types of streams: server-sent events, and Apollo's multipart protocol for subscriptions. */
export const eventStream = 'text/event-stream';
export const multipart = 'multipart/mixed';
export type StreamType = typeof eventStream | typeof multipart;

export const notAcceptable = `Accept must name ${graphqlType} or ${jsonType} for a query or mutation, ${eventStream} or ${multipart};subscriptionSpec=1.0 for a subscription`;

/** The media types of a response: `whole` for one result, `stream` for several. At least one of them is defined. */
export interface Accepted {
  readonly whole: WholeType | undefined;
  readonly stream: StreamType | undefined;
}

/** Caches the types by the `Accept` header, of which clients send few different ones. */
const knownTypes = new LRUCache<string, Accepted>({ max: 100 });

/**
 * The media types that a client accepts, of each kind the one that it prefers. A client that accepts a whole response never gets the
 * result of a query or mutation as a stream, even if it prefers one: Apollo Client names the stream for subscriptions before all
 * other types.
 */
export function acceptedBy(accept = ''): Accepted {
  const known = knownTypes.get(accept);
  if (known) return known;
  const mayBeMultipart = /\bsubscriptionSpec="?1\.0/i.test(accept);
  const [whole] = acceptedOf(wholeTypes, accept);
  const [stream] = acceptedOf<StreamType>(mayBeMultipart ? [eventStream, multipart] : [eventStream], accept);
  const types = { whole, stream };
  knownTypes.set(accept, types);
  return types;
}
