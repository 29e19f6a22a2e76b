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
import type { Exchange } from '../http/exchange.ts';
import { asksForPage, isRead } from '../http/requestChecks.ts';
import { type HttpResponse, isResponse, revalidated, textResponse } from '../http/response.ts';
import { restPath } from '../http/target.ts';
import type { OtherWork, Query, Task } from '../http/task.ts';
import type { Context } from '../schema/context.ts';
import { findBodyError, type Input, type RouteRequest, readInput, readParameters } from './input.ts';
import { allowHeader, createPathMatcher } from './match.ts';
import { routeError, success } from './response.ts';
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
    const routeRequest = { route, id: match.id, parameters };
    return operationTask({ exchange, viewer, routeRequest, createContext, hasEnded });
  };
}

/** A request of a viewer, with what is needed to run its operation. */
interface Call extends Pick<RestOptions, 'createContext'> {
  readonly exchange: Exchange;
  readonly viewer: Viewer;
  readonly routeRequest: RouteRequest;
  readonly hasEnded: HasEnded;
}

function operationTask(call: Call): HttpResponse | Task {
  const { routeRequest, viewer } = call;
  if (routeRequest.route.isMutation) return { cacheKey: undefined, prepare: () => mutationWork(call) };
  const input = readInput(routeRequest, viewer);
  if (isResponse(input)) return input;
  return { cacheKey: cacheKeyOf(routeRequest.route, input), prepare: () => queryWork(call, input) };
}

function mutationWork(call: Call): OtherWork {
  const { exchange, viewer, routeRequest, hasEnded } = call;
  async function read(): Promise<Input | HttpResponse> {
    const began = performance.now();
    const bodyError = await findBodyError(exchange, routeRequest.route);
    if (await hasEnded(viewer, began)) return unauthorized(exchange.request);
    // The body is checked before the id (docs/rest.md#activation).
    return bodyError ?? readInput(routeRequest, viewer);
  }
  return { kind: 'other', run: () => respond(call, read()), mayHaveWritten: () => true };
}

function queryWork(call: Call, input: Input): Query {
  return {
    kind: 'query',
    async run() {
      const response = await respond(call, input);
      return { response, isCacheable: response.status === 200 };
    },
  };
}

/** The cache key of a query: everything that its response depends on, except the viewer. */
function cacheKeyOf({ label }: Route, { variables: { id }, pagination }: Input): string {
  const key = id === undefined ? label : `${label} ${id}`;
  return pagination ? `${key} ${pagination.limit} ${pagination.offset}` : key;
}

async function respond(
  { exchange, viewer, routeRequest: { route }, createContext }: Call,
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
