/**
 * The front of this folder: the REST API. It turns a URL into variables, runs the route's operation, and wraps the data in the
 * envelope.
 *
 * Its responses are those that openapi.json describes, which every test with a gateway checks. It has no data and no access
 * rules of its own, so any server may take its place that sends the operations of `operations.graphql` to `/graphql`.
 */

import type { IncomingMessage } from 'node:http';
import { type HasEnded, problemOf, type Viewer } from '../auth/viewer.ts';
import { challengeFor, codeOf, messages, retryAfterOf, statusOf } from '../errors.ts';
import { restErrorResponse } from '../http/errorResponse.ts';
import { type Exchange, restPath } from '../http/exchange.ts';
import { asksForPage, isRead } from '../http/requestChecks.ts';
import { type HttpResponse, isResponse, jsonResponse, revalidated, textResponse } from '../http/response.ts';
import type { Task } from '../http/task.ts';
import type { Context } from '../schema/context.ts';
import {
  findBodyError,
  type Input,
  type Pagination,
  type RouteRequest,
  readInput,
  readParameters,
  routeError,
} from './input.ts';
import { type Route, routes as shippedRoutes } from './routes.ts';

export interface RestOptions {
  createContext(viewer: Viewer): Context;
  /** By default, a token that was valid when the head arrived counts as valid when the body has arrived. */
  hasEnded?: HasEnded;
  /** Path of the page that documents the interface, if the gateway serves one. */
  docsPath?: string | undefined;
  /** By default, those of `operations.graphql`. */
  routes?: readonly Route[];
}

export type RestHandler = (exchange: Exchange, viewer: Viewer | null) => HttpResponse | Task;

/** Handles every request below `/api/v1`. An anonymous client gets a 401 for every path, also for an unknown one. */
export function createRestHandler({
  createContext,
  hasEnded = async () => false,
  docsPath,
  routes = shippedRoutes,
}: RestOptions): RestHandler {
  const matchPath = createPathMatcher(routes);

  return (exchange, viewer) => {
    const { request, target } = exchange;
    const path = exchange.path.slice(restPath.length);
    if (!viewer) {
      if (docsPath !== undefined && path === '' && asksForPage(exchange)) return redirect(docsPath);
      return unauthorized(request);
    }
    const match = matchPath(path);
    const method = isRead(exchange) ? 'GET' : request.method;
    const route = match?.routes.find((candidate) => candidate.method === method);
    if (!match) return restErrorResponse(404, messages.notFound);
    if (!route)
      return restErrorResponse(405, messages.methodNotAllowed, { Allow: allowHeader(match.routes) });
    exchange.operation = route.label;
    const parameters = readParameters(target.slice(exchange.path.length));
    return taskOf({ exchange, viewer, route, id: match.id, parameters, createContext, hasEnded });
  };
}

/** A request of a viewer, with what is needed to run its operation. */
interface Call extends RouteRequest, Required<Pick<RestOptions, 'createContext' | 'hasEnded'>> {
  readonly exchange: Exchange;
  readonly viewer: Viewer;
}

function taskOf(call: Call): HttpResponse | Task {
  const { route, viewer } = call;
  if (route.isMutation) {
    const run = () => respond(call, readWithBody(call));
    return { cacheKey: undefined, prepare: () => ({ kind: 'other', run, mayHaveWritten: () => true }) };
  }
  const input = readInput(call, viewer);
  if (isResponse(input)) return input;
  const run = async () => {
    const response = await respond(call, input);
    return { response, isCacheable: response.status === 200 };
  };
  return { cacheKey: cacheKeyOf(route, input), prepare: () => ({ kind: 'query', run }) };
}

async function readWithBody(call: Call) {
  const { exchange, viewer, route, hasEnded } = call;
  const began = performance.now();
  const bodyError = await findBodyError(exchange, route);
  if (await hasEnded(viewer, began)) return unauthorized(exchange.request);
  // The body is checked before the id (docs/rest.md#activation).
  return bodyError ?? readInput(call, viewer);
}

/** The cache key of a query: everything that its response depends on, except the viewer. */
function cacheKeyOf({ label }: Route, { variables: { id }, pagination }: Input): string {
  const key = id === undefined ? label : `${label} ${id}`;
  return pagination ? `${key} ${pagination.limit} ${pagination.offset}` : key;
}

async function respond(
  { exchange, viewer, route, createContext }: Call,
  reading: Input | Promise<Input | HttpResponse>,
): Promise<HttpResponse> {
  try {
    const input = reading instanceof Promise ? await reading : reading;
    return isResponse(input) ? input : await runOperation(route, input, createContext(viewer));
  } catch (error) {
    exchange.report(error);
    return routeError(route, 500, messages.internal);
  }
}

async function runOperation(
  route: Route,
  { variables, pagination }: Input,
  context: Context,
): Promise<HttpResponse> {
  const { data, errors } = await route.run(variables, context);
  const [error] = errors ?? [];
  if (error) {
    const code = codeOf(error);
    if (!code) throw error.originalError ?? error;
    // The viewer was deleted after the request was authenticated. The message is that of the REST interface.
    if (code === 'UNAUTHENTICATED')
      return routeError(route, statusOf[code], messages.unauthorized, challengeFor('invalid'));
    const retryAfter = retryAfterOf(error);
    return routeError(
      route,
      statusOf[code],
      error.message,
      retryAfter === undefined ? {} : { 'Retry-After': String(retryAfter) },
    );
  }
  const result = data?.data ?? null;
  if (result === null && route.missing !== undefined) return routeError(route, 404, route.missing);
  const headers = route.deprecation?.headers;
  const response = { ...success(result, pagination, headers), operation: route.label };
  return route.isMutation ? response : revalidated(response, 'Authorization', headers);
}

function unauthorized({ headers }: IncomingMessage): HttpResponse {
  return restErrorResponse(401, messages.unauthorized, challengeFor(problemOf(headers.authorization)));
}

function redirect(path: string): HttpResponse {
  const headers = { Location: path, 'Cache-Control': 'no-store', Vary: 'Accept, Authorization' };
  return textResponse(302, `See ${path}.`, headers);
}

/** Returns a function that finds the routes of a path. A literal path takes precedence over one that ends in `{id}`. */
function createPathMatcher(routes: readonly Route[]) {
  const byPath = new Map<string, Route[]>();
  for (const route of routes) byPath.set(route.path, [...(byPath.get(route.path) ?? []), route]);

  return (path: string) => {
    // `{id}` is part of a template. A client that sends these characters has sent an invalid id.
    const literal = path.endsWith('/{id}') ? undefined : byPath.get(path);
    if (literal) return { routes: literal, id: undefined };
    const slash = path.lastIndexOf('/');
    const id = path.slice(slash + 1);
    // A path with a trailing slash is an unknown path, not a path with an empty id.
    const withId = id === '' ? undefined : byPath.get(`${path.slice(0, slash)}/{id}`);
    // Digits may be percent-encoded: `%31` is `1` (RFC 3986, section 2.3). No other character is part of an id.
    return withId && { routes: withId, id: id.replace(/%3(\d)/g, '$1') };
  };
}

/** The value of the `Allow` header for a path with these routes. Every path that supports GET supports HEAD. */
function allowHeader(routes: readonly Route[]): string {
  return routes.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ');
}

/** A successful response. @param pagination the page that the client asked for, for a list. */
function success(
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
