/** The responses of REST routes: the success envelope, and errors. */

import { restErrorResponse } from '../http/errorResponse.ts';
import { type HttpResponse, jsonResponse } from '../http/response.ts';
import type { Route } from './routes.ts';

/**
 * The page of a list. The response repeats it to the client in the client's own digits, since an offset may be larger than
 * any number of JavaScript.
 */
export interface Pagination {
  readonly limit: string;
  readonly offset: string;
}

/**
 * A successful response.
 * @param pagination the page that the client asked for, for a list.
 */
export function success(
  data: unknown,
  pagination: Pagination | undefined,
  headers?: Readonly<Record<string, string>>,
): HttpResponse {
  if (!pagination) return jsonResponse(200, `{"ok":true,"data":${JSON.stringify(data)}}`, headers);
  // The data of a list is an object, so `pagination` goes in before its closing brace.
  const list = JSON.stringify(data).slice(0, -1);
  const { limit, offset } = pagination;
  const echo = `{"limit":${limit},"offset":${offset}}`;
  return jsonResponse(200, `{"ok":true,"data":${list},"pagination":${echo}}}`, headers);
}

/** An error response of a route, with the deprecation headers that every response of the route has. */
export function routeError(
  route: Route,
  status: number,
  message: string,
  headers?: Record<string, string>,
): HttpResponse {
  return restErrorResponse(status, message, { ...headers, ...route.deprecation?.headers });
}
