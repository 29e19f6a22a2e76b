/**
 * The main file of this folder: the REST API. It turns a URL into variables, runs the operation of the route, and wraps the data in
 * the envelope.
 *
 * Promises the responses that openapi.json describes; every test with a gateway checks that. It has no data and no access rules of
 * its own. To replace it: run any server that sends the operations of `operations.graphql` to `/graphql`.
 */

import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { allows } from '../auth/scopes.ts';
import { type Recheck, unauthorized, type Viewer } from '../auth/viewer.ts';
import { largestId } from '../database/ids.ts';
import { challengeFor, codeOf, forbiddenUser, messages, scopeNeeded, statusOf } from '../errors.ts';
import { failureResponse, restErrorResponse } from '../http/errorResponse.ts';
import { type Exchange, restPath } from '../http/exchange.ts';
import { isRecord, parseJson } from '../http/json.ts';
import { isRead, readPlain } from '../http/request.ts';
import { type HttpResponse, isResponse, jsonResponse, revalidated } from '../http/response.ts';
import type { Computed, Task } from '../http/task.ts';
import type { Context } from '../schema/context.ts';
import { pageErrors, pageSize } from '../schema/loading/pagination.ts';
import { type Route, routes } from './routes.ts';

/** A read of the REST API that may be followed. */
export interface FollowedRead {
  readonly exchange: Exchange;
  readonly viewer: Viewer;
  /** Names the route in the log and the metrics. */
  readonly label: string;
  /** The key of the response in the cache, which requests of the route use as well. */
  readonly key: string;
  read(context: Context): Promise<Computed>;
}

interface RestOptions {
  readonly recheck: Recheck;
  createContext(viewer: Viewer): Context;
  /** How to respond to a client that wants to follow a read; undefined where none can. */
  readonly follow: ((read: FollowedRead) => Task['follow']) | undefined;
}

/** Handles every request below `/api/v1`. An anonymous client gets a 401 for every path, also for an unknown one. */
export function createRestHandler(options: RestOptions) {
  const matchPath = createPathMatcher();

  return (exchange: Exchange, viewer: Viewer | null): HttpResponse | Task => {
    const { target, request } = exchange;
    const path = exchange.path.slice(restPath.length);
    if (!viewer) return unauthorized(exchange);
    const match = matchPath(path);
    const method = isRead(exchange) ? 'GET' : request.method;
    const route = match?.routes.find((candidate) => candidate.method === method);
    if (!match) return restErrorResponse(404, messages.notFound);
    if (!route)
      return restErrorResponse(405, messages.methodNotAllowed, { Allow: allowHeader(match.routes) });
    exchange.operation = route.label;
    const parameters = new URLSearchParams(target.slice(exchange.path.length));
    return taskOf({ options, exchange, viewer, route, id: match.id, parameters });
  };
}

/** A request whose route is known. Its input has not been checked yet. */
interface Call {
  readonly options: RestOptions;
  readonly exchange: Exchange;
  readonly viewer: Viewer;
  readonly route: Route;
  /** The last segment of the path, with its digits decoded, if the route has an id there. */
  readonly id: string | undefined;
  readonly parameters: URLSearchParams;
}

function taskOf(call: Call): HttpResponse | Task {
  const { options, exchange, route, viewer } = call;
  // Every token may read.
  if (route.isMutation) {
    if (!allows(viewer.scope, route.scope))
      return restErrorResponse(statusOf.FORBIDDEN, scopeNeeded(route.scope));
    const run = () => respondToBody(call);
    return { cacheKey: undefined, prepare: () => ({ kind: 'other', run, mayHaveWritten: true }) };
  }
  const input = readInput(call);
  if (isResponse(input)) return input;
  const read = async (context: Context) => {
    const response = await respond(call, input, context);
    return { response, isCacheable: response.status === 200 };
  };
  const key = cacheKeyOf(route, input);
  return {
    cacheKey: key,
    prepare: () => ({ kind: 'query', run: () => read(options.createContext(viewer)) }),
    follow: options.follow?.({ exchange, viewer, label: route.label, key, read }),
  };
}

async function respondToBody(call: Call): Promise<HttpResponse> {
  const { options, exchange, route } = call;
  const bodyError = await findBodyError(exchange, route);
  const viewer = await options.recheck(exchange, call.viewer);
  if (!viewer) return unauthorized(exchange);
  // The body is checked before the id (docs/rest.md#activation).
  const input = bodyError ?? readInput(call);
  return isResponse(input) ? input : respond(call, input, options.createContext(viewer));
}

/** The cache key of a query: everything that its response depends on, except the viewer. */
function cacheKeyOf({ label }: Route, { variables: { id }, pagination }: Input): string {
  const key = id === undefined ? label : `${label} ${id}`;
  return pagination ? `${key} ${pagination.limit} ${pagination.offset}` : key;
}

async function respond(
  { exchange, route }: Call,
  { variables, pagination }: Input,
  context: Context,
): Promise<HttpResponse> {
  try {
    const { data, errors: [error] = [] } = await route.run(variables, context);
    // The viewer was deleted after the request was authenticated. The message is that of the REST interface.
    if (error && codeOf(error) === 'UNAUTHENTICATED')
      return restErrorResponse(401, messages.unauthorized, challengeFor('invalid'));
    if (error) throw codeOf(error) ? error : (error.originalError ?? error);
    const result = data?.data ?? null;
    if (result === null && route.missing !== undefined) return restErrorResponse(404, route.missing);
    const response = { ...success(result, pagination), operation: route.label };
    return route.isMutation ? response : revalidated(response, 'Authorization, Accept');
  } catch (error) {
    return failureResponse(exchange, error);
  }
}

/** Returns a function that finds the routes of a path. A literal path takes precedence over one that ends in `{id}`. */
function createPathMatcher() {
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
function success(data: unknown, pagination: Pagination | undefined): HttpResponse {
  if (!pagination) return jsonResponse(200, `{"ok":true,"data":${JSON.stringify(data)}}`);
  // The data of a list is an object, so `pagination` goes in before its closing brace.
  const list = JSON.stringify(data).slice(0, -1);
  const { limit, offset } = pagination;
  const echo = `{"limit":${limit},"offset":${offset}}`;
  return jsonResponse(200, `{"ok":true,"data":${list},"pagination":${echo}}}`);
}

/** The largest body of a request, in bytes: many times what any operation needs. */
const maxBody = 64 * 1024;

/** The page of a list, with the digits of the client: an offset may be larger than any integer of JavaScript. */
interface Pagination {
  readonly limit: string;
  readonly offset: string;
}

/** The checked input of an operation. */
interface Input {
  readonly variables: Readonly<Record<string, number>>;
  /** Undefined for a route that does not respond with a list. */
  readonly pagination: Pagination | undefined;
}

/** The header that names the accepted media type. The message of the error, which is documented, does not. */
const acceptsJsonOnly = { Accept: 'application/json' };

/**
 * Reads the id in the path and the page in the query string (docs/rest.md#ids, docs/rest.md#paging).
 * @returns an error response if one of them is invalid.
 */
function readInput({ route, id: idText, parameters, viewer }: Call): Input | HttpResponse {
  const targetError = findTargetError(parameters, viewer);
  if (targetError) return targetError;
  const variables: Record<string, number> = {};
  if (idText !== undefined) {
    const id = readInteger(idText);
    const isInvalid = id === undefined || id < 1;
    // An activation responds with the same error for every id that it cannot use (docs/rest.md#activation).
    if (isInvalid && !route.isMutation) return restErrorResponse(400, messages.invalidId);
    if (isInvalid || id > largestId) return restErrorResponse(404, route.missing ?? messages.notFound);
    variables.id = id;
  }
  const pagination = route.isList ? readPagination(parameters) : undefined;
  if (typeof pagination === 'string') return restErrorResponse(400, pagination);
  if (pagination) {
    variables.limit = Number(pagination.limit);
    // No list is longer than there are ids, so a larger offset is beyond the end of the list as well.
    variables.offset = Math.min(Number(pagination.offset), largestId);
  }
  return { variables, pagination };
}

/**
 * Checks `targetUserId`, with which clients name the user whose data they want (docs/rest.md#who-sees-what). Only the viewer's own
 * id is valid. For another id, a response with the viewer's data would be wrong.
 */
function findTargetError(parameters: URLSearchParams, viewer: Viewer): HttpResponse | undefined {
  for (const text of parameters.getAll('targetUserId')) {
    const id = readInteger(text);
    if (id === undefined || id < 1) return restErrorResponse(400, messages.invalidId);
    if (id !== viewer.id) return restErrorResponse(statusOf.FORBIDDEN, forbiddenUser(text));
  }
  return undefined;
}

/** The page that a query string asks for, or an error message if it is invalid. */
function readPagination(parameters: URLSearchParams): Pagination | string {
  const [limit = String(pageSize.default), ...otherLimits] = parameters.getAll('limit');
  const [offset = '0', ...otherOffsets] = parameters.getAll('offset');
  const size = readInteger(limit);
  if (size === undefined || size < 1 || size > pageSize.highest || otherLimits.length > 0)
    return pageErrors.size('limit');
  if (readInteger(offset) === undefined || otherOffsets.length > 0) return pageErrors.offset;
  return { limit, offset };
}

/** The number, if the text is digits without a sign or a leading zero. */
function readInteger(text: string): number | undefined {
  return /^(0|[1-9]\d*)$/.test(text) ? Number(text) : undefined;
}

/** Reads the body, for a route that needs one, and returns an error response if the body is invalid. */
async function findBodyError(exchange: Exchange, route: Route): Promise<HttpResponse | undefined> {
  if (!route.body) return undefined;
  const { request, message: sent } = exchange;
  const body = sent ? undefined : await readPlain(exchange, maxBody);
  if (body && isResponse(body)) return body;
  const { values, message: error } = route.body;
  if (!isJson(request)) return restErrorResponse(400, error, acceptsJsonOnly);
  const content = body ? contentOf(body) : sent?.content;
  if (isRecord(content) && Object.entries(values).every(([name, value]) => content[name] === value))
    return undefined;
  return restErrorResponse(400, error, content === undefined ? acceptsJsonOnly : {});
}

/** The value of a JSON body; undefined for any other body. */
const contentOf = (body: Buffer) => (isUtf8(body) ? parseJson(body.toString()) : undefined);

function isJson({ headers }: IncomingMessage): boolean {
  return headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase() === 'application/json';
}
