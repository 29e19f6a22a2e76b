/** The REST API: turns a URL into variables, runs the route's operation, and wraps the data in the envelope. */

import type { IncomingMessage } from 'node:http';
import { problemOf, type Viewer } from '../auth/viewer.ts';
import { largestId } from '../database/ids.ts';
import { challengeFor, codeOf, forbiddenUser, messages, retryAfterOf, statusOf } from '../errors.ts';
import { isEncoded, readBody, takesPlain } from '../http/body.ts';
import { restErrorResponse } from '../http/errorResponse.ts';
import { asksForPage, type Exchange, isRead, restPath } from '../http/exchange.ts';
import { type HttpResponse, jsonResponse, revalidated, textResponse } from '../http/response.ts';
import type { OtherWork, Query, Task } from '../http/task.ts';
import type { Context } from '../schema/context.ts';
import { pageErrors, pageSize } from '../schema/loading/pagination.ts';
import { type Route, routes as shippedRoutes } from './routes.ts';

/** The largest body of a request, in bytes: many times what any operation needs. */
const maxBody = 64 * 1024;

export interface RestOptions {
  createContext(viewer: Viewer): Context;
  /** What hands a viewer's requests on to where their account lives, as they are; undefined for one whose are not. */
  relayFor?: ((viewer: Viewer) => Relay | undefined) | undefined;
  /** Where people read about the interface, if they can. */
  docsPath?: string | undefined;
  /** Those of `operations.graphql` unless told otherwise. */
  routes?: readonly Route[];
}

type Relay = (exchange: Exchange) => Promise<HttpResponse>;

export type RestHandler = (exchange: Exchange, viewer: Viewer | null) => HttpResponse | Task;

/** Handles everything below `/api/v1`. Anonymous clients get a 401 there, also for a path that is unknown. */
export function createRestHandler({
  createContext,
  relayFor,
  docsPath,
  routes = shippedRoutes,
}: RestOptions): RestHandler {
  const byPath = new Map<string, Route[]>();
  for (const route of routes) byPath.set(route.path, [...(byPath.get(route.path) ?? []), route]);

  return (exchange, viewer) => {
    const { request, target } = exchange;
    const path = exchange.path.slice(restPath.length);
    if (!viewer) {
      if (docsPath !== undefined && path === '' && asksForPage(exchange)) return redirect(docsPath);
      return unauthorized(request);
    }
    const match = matchPath(byPath, path);
    const method = isRead(exchange) ? 'GET' : request.method;
    const route = match?.routes.find((candidate) => candidate.method === method);
    const asked = route && {
      route,
      id: match?.id,
      parameters: parametersOf(target.slice(exchange.path.length)),
    };
    const relay = relayFor && !(asked && covers(asked, viewer)) ? relayFor(viewer) : undefined;
    if (relay) return taskOfRelay(exchange, relay);
    if (!match) return restErrorResponse(404, messages.notFound);
    if (!asked) return restErrorResponse(405, messages.methodNotAllowed, { Allow: allowed(match.routes) });
    exchange.operation = asked.route.label;
    return taskOf({ exchange, viewer, asked, createContext, relayFor });
  };
}

type Serving = Pick<RestOptions, 'createContext' | 'relayFor'>;

/** A request of a viewer's, as far as its route is known. */
interface Call extends Serving {
  readonly exchange: Exchange;
  readonly viewer: Viewer;
  readonly asked: Asked;
}

function taskOf(call: Call): HttpResponse | Task {
  const { asked, viewer } = call;
  if (asked.route.isMutation) return { cacheKey: undefined, prepare: () => mutationOf(call) };
  const input = readInput(asked, viewer);
  if ('status' in input) return input;
  return { cacheKey: keyOf(asked.route, input), prepare: () => queryOf(call, input) };
}

function mutationOf(call: Call): OtherWork {
  const { exchange, viewer, asked } = call;
  // What is wrong with the body is told before what is wrong with the id (docs/rest.md#activation).
  const read = async () => (await findBodyError(exchange, asked.route)) ?? readInput(asked, viewer);
  return { kind: 'other', run: () => respond(call, read()), mayHaveWritten: () => true };
}

function queryOf(call: Call, input: Input): Query {
  const { exchange, viewer, relayFor } = call;
  return {
    kind: 'query',
    async run() {
      const response = await respond(call, input);
      return { response, isCacheable: response.status === 200 };
    },
    // What is not here may be new upstream, or somebody's whose records the viewer may see there.
    finish: async (response) =>
      response.status === 404 ? (relayFor?.(viewer)?.(exchange) ?? response) : response,
  };
}

async function respond(
  { exchange, viewer, asked: { route }, createContext }: Call,
  given: Input | Promise<Input | HttpResponse>,
): Promise<HttpResponse> {
  try {
    const input = given instanceof Promise ? await given : given;
    return 'status' in input ? input : await run(route, input, createContext(viewer));
  } catch (error) {
    exchange.report(error);
    return failureOf(route, 500, messages.internal);
  }
}

/**
 * Whether an operation knows what to make of all that a path and a query string say. Where an id should be, the upstream may
 * have a path of its own, such as `/lkbx/settings`; and of users, the gateway knows the viewer alone.
 */
function covers({ route, id, parameters }: Asked, viewer: Viewer): boolean {
  if (id !== undefined && !/^\d+$/.test(id)) return false;
  if (route.path === '/users' || (route.path === '/users/{id}' && id !== String(viewer.id))) return false;
  return [...parameters].every(([name, value]) =>
    name === 'targetUserId'
      ? value === String(viewer.id)
      : route.isList && (name === 'limit' || name === 'offset'),
  );
}

function taskOfRelay(exchange: Exchange, relay: Relay): Task {
  const work = {
    kind: 'other',
    run: () => relay(exchange),
    mayHaveWritten: () => !isRead(exchange),
  } as const;
  return { cacheKey: undefined, prepare: () => work };
}

function unauthorized({ headers }: IncomingMessage): HttpResponse {
  return restErrorResponse(401, messages.unauthorized, challengeFor(problemOf(headers.authorization)));
}

/** What the response of a read depends on beside the viewer, so that nothing else fills the cache. */
function keyOf({ label }: Route, { variables: { id }, pagination }: Input): string {
  const key = id === undefined ? label : `${label} ${id}`;
  return pagination ? `${key} ${pagination.limit} ${pagination.offset}` : key;
}

function redirect(path: string): HttpResponse {
  const headers = { Location: path, 'Cache-Control': 'no-store', Vary: 'Accept, Authorization' };
  return textResponse(302, `See ${path}.`, headers);
}

/** What a target asks for, as far as its path has been read. */
interface Asked {
  readonly route: Route;
  /** The last segment of the path, for a route that has an id there. */
  readonly id: string | undefined;
  readonly parameters: URLSearchParams;
}

const noParameters = new URLSearchParams();

/** @param query with its question mark, or empty. */
function parametersOf(query: string): URLSearchParams {
  return query === '' ? noParameters : new URLSearchParams(query);
}

/** What a URL asks of a route. */
interface Input {
  readonly variables: Readonly<Record<string, number>>;
  /** Undefined for a route that is no list. */
  readonly pagination: Pagination | undefined;
}

/** What is wrong with the body, for a route that takes one. */
async function findBodyError(
  { request, message }: Exchange,
  route: Route,
): Promise<HttpResponse | undefined> {
  if (!route.body) return undefined;
  if (isEncoded(request)) return failureOf(route, 415, messages.bodyEncoded, takesPlain);
  const body = message ? message.body : await readBody(request, maxBody);
  if (!body) return failureOf(route, 413, messages.bodyTooLarge, { Connection: 'close' });
  return includes(request, body, route.body.values) ? undefined : failureOf(route, 400, route.body.message);
}

/**
 * What is wrong with `targetUserId`, by which clients say whose data they mean (docs/rest.md#who-sees-what). It is the
 * viewer's own, or it must not be ignored.
 */
function findTargetError(
  route: Route,
  parameters: URLSearchParams,
  viewer: Viewer,
): HttpResponse | undefined {
  for (const text of parameters.getAll('targetUserId')) {
    const id = canonicalInteger(text);
    if (id === undefined || id < 1) return failureOf(route, 400, messages.invalidId);
    if (id !== viewer.id) return failureOf(route, statusOf.FORBIDDEN, forbiddenUser(text));
  }
  return undefined;
}

/**
 * Reads the id in the path, and the page in the query string (docs/rest.md#ids, docs/rest.md#paging).
 * @returns the error response if one of them is wrong.
 */
function readInput({ route, id: givenId, parameters }: Asked, viewer: Viewer): Input | HttpResponse {
  const wrong = findTargetError(route, parameters, viewer);
  if (wrong) return wrong;
  const variables: Record<string, number> = {};
  if (givenId !== undefined) {
    const id = canonicalInteger(givenId);
    // An activation has one error for every id that it cannot use (docs/rest.md#activation).
    if ((id === undefined || id < 1) && !route.isMutation) return failureOf(route, 400, messages.invalidId);
    if (id === undefined || id < 1 || id > largestId)
      return failureOf(route, 404, route.missing ?? messages.notFound);
    variables.id = id;
  }
  const pagination = route.isList ? readPagination(parameters) : undefined;
  if (typeof pagination === 'string') return failureOf(route, 400, pagination);
  if (pagination) {
    variables.limit = Number(pagination.limit);
    // No list is longer than there are ids, so this offset is beyond its end as well.
    variables.offset = Math.min(Number(pagination.offset), largestId);
  }
  return { variables, pagination };
}

async function run(route: Route, { variables, pagination }: Input, context: Context): Promise<HttpResponse> {
  const { data, errors } = await route.run(variables, context);
  const [error] = errors ?? [];
  if (error) {
    const code = codeOf(error);
    if (!code) throw error.originalError ?? error;
    // The viewer was deleted since. The message is the interface's.
    if (code === 'UNAUTHENTICATED')
      return failureOf(route, statusOf[code], messages.unauthorized, challengeFor('invalid'));
    const retryAfter = retryAfterOf(error);
    return failureOf(
      route,
      statusOf[code],
      error.message,
      retryAfter === undefined ? {} : { 'Retry-After': String(retryAfter) },
    );
  }
  const result = data?.data ?? null;
  if (result === null && route.missing !== undefined) return failureOf(route, 404, route.missing);
  const headers = route.deprecation?.headers;
  const response = { ...success(result, pagination, headers), operation: route.label };
  return route.isMutation ? response : revalidated(response, 'Authorization', headers);
}

/** The routes at a path, and the id in it. A path that is written out goes before one with `{id}`. */
function matchPath(
  byPath: ReadonlyMap<string, readonly Route[]>,
  path: string,
): { routes: readonly Route[]; id?: string } | undefined {
  const slash = path.lastIndexOf('/');
  // A client may write the braces themselves, which are no id.
  const exact = path.endsWith('/{id}') ? undefined : byPath.get(path);
  if (exact) return { routes: exact };
  const id = path.slice(slash + 1);
  // A slash at the end of a path is another path, and no id that is wrong.
  const withId = id === '' ? undefined : byPath.get(`${path.slice(0, slash)}/{id}`);
  return withId && { routes: withId, id };
}

/** The value of the Allow header. HEAD works wherever GET does. */
function allowed(candidates: readonly Route[]): string {
  return candidates.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ');
}

/** The number, if the text is digits without a sign or a leading zero. */
function canonicalInteger(text: string): number | undefined {
  return /^(0|[1-9]\d*)$/.test(text) ? Number(text) : undefined;
}

/** What a list repeats to the client, in the client's own digits: an offset may be larger than a JavaScript number can be. */
interface Pagination {
  readonly limit: string;
  readonly offset: string;
}

const firstPage: Pagination = { limit: String(pageSize.default), offset: '0' };

/** The page that a query string asks for, or the message that says what is wrong with it. */
function readPagination(parameters: URLSearchParams): Pagination | string {
  if (parameters === noParameters) return firstPage;
  const [limit = String(pageSize.default), ...otherLimits] = parameters.getAll('limit');
  const [offset = '0', ...otherOffsets] = parameters.getAll('offset');
  const size = canonicalInteger(limit);
  if (size === undefined || size < 1 || size > pageSize.highest || otherLimits.length > 0)
    return pageErrors.size('limit');
  if (canonicalInteger(offset) === undefined || otherOffsets.length > 0) return pageErrors.offset;
  return { limit, offset };
}

/** Whether the body is JSON, sent as JSON, and has the values. */
function includes(
  request: IncomingMessage,
  body: Buffer,
  values: Readonly<Record<string, unknown>>,
): boolean {
  const mediaType = request.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  if (mediaType !== 'application/json') return false;
  let content: unknown;
  try {
    content = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    return false;
  }
  if (typeof content !== 'object' || content === null) return false;
  const given = new Map<string, unknown>(Object.entries(content));
  return Object.entries(values).every(([name, value]) => given.has(name) && given.get(name) === value);
}

function success(
  data: unknown,
  pagination: Pagination | undefined,
  headers?: Readonly<Record<string, string>>,
): HttpResponse {
  if (!pagination) return jsonResponse(200, `{"ok":true,"data":${JSON.stringify(data)}}`, headers);
  const list = JSON.stringify(data).slice(0, -1);
  const { limit, offset } = pagination;
  const echo = `{"limit":${limit},"offset":${offset}}`;
  return jsonResponse(200, `{"ok":true,"data":${list},"pagination":${echo}}}`, headers);
}

/** A failure of a route, which carries what all of the route's responses do. */
function failureOf(
  route: Route,
  status: number,
  message: string,
  headers?: Record<string, string>,
): HttpResponse {
  return restErrorResponse(status, message, { ...headers, ...route.deprecation?.headers });
}
