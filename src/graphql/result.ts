/** Responses with results: of which media type and with which status they are, and what of a result a client may see. */

import type { ExecutionResult, FormattedExecutionResult } from 'graphql';
import { LRUCache } from 'lru-cache';
import { type ExecutionError, errorForClient } from '../errors.ts';
import { acceptedOf, readAccept } from '../http/request.ts';
import { type HttpResponse, jsonResponse } from '../http/response.ts';
import { type Framing, framingFor } from './transports/framing.ts';

/** Is told of every error that is hidden from the client. */
export type Report = (error: unknown) => void;

/** The request headers on which a response depends. */
export const vary = 'Authorization, Accept';

/** How many errors a response has at most: as many as a page has records. Where a field fails, it often does for each of a list. */
const mostErrors = 100;

/** Lets through the errors that are meant for clients, with their codes, and masks all others. */
export function forClient({ data, errors }: ExecutionResult, report: Report): FormattedExecutionResult {
  return {
    ...(errors && { errors: errors.slice(0, mostErrors).map((error) => errorForClient(error, report)) }),
    ...(data !== undefined && { data }),
  };
}

/** The response that has the result: as JSON, or as a stream with one result. */
export function responseOf(result: ExecutionResult, type: ResultType, report: Report): HttpResponse {
  const shown = forClient(result, report);
  const text = JSON.stringify(shown);
  const [first] = shown.errors ?? [];
  const own = isWholeType(type) ? { 'Content-Type': `${type}; charset=utf-8` } : type.headers;
  const { status, headers } = httpOf(result, isWholeType(type) ? type : jsonType);
  const body = isWholeType(type) ? text : `${type.opening}${type.result(text)}${type.closing(undefined)}`;
  const response = jsonResponse(status, body, {
    ...own,
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
    // Only `errors.ts` and `requestFailure.ts` set it.
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

export type WholeType = (typeof wholeTypes)[number];
/** A query or mutation can also be had as a stream with one result. */
export type ResultType = WholeType | Framing;

export const isWholeType = (type: ResultType): type is WholeType => typeof type === 'string';

/** The media types of subscriptions, as error messages name them. */
const streamingTypes = 'text/event-stream or multipart/mixed;subscriptionSpec=1.0';

export const notAcceptable = `Accept must name ${graphqlType} or ${jsonType} for a query or mutation, ${streamingTypes} for a subscription`;

/** Caches the types by the `Accept` header, of which clients send few different ones. */
const known = new LRUCache<string, { type: ResultType | undefined }>({ max: 100 });

/**
 * The media type of the response to a query or mutation; undefined where the client accepts none. It is decided before the
 * operation runs. A client that accepts a whole response never gets a stream, whatever it prefers: Apollo Client names the
 * stream for subscriptions before all other types.
 */
export function resultTypeFor(accept = ''): ResultType | undefined {
  const found = known.get(accept);
  if (found) return found.type;
  const [whole] = acceptedOf(wholeTypes, readAccept(accept));
  const type = whole ?? framingFor(accept);
  known.set(accept, { type });
  return type;
}
