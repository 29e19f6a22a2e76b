/** Reads and checks the input of REST requests: the id in the path, the query string and the body. */

import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import type { Viewer } from '../auth/viewer.ts';
import { largestId } from '../database/ids.ts';
import { forbiddenUser, messages, statusOf } from '../errors.ts';
import { acceptsIdentityOnly, isEncoded, readBody } from '../http/body.ts';
import { restErrorResponse } from '../http/errorResponse.ts';
import type { Exchange } from '../http/exchange.ts';
import { isRecord, parseJson } from '../http/json.ts';
import type { HttpResponse } from '../http/response.ts';
import { pageErrors, pageSize } from '../schema/loading/pagination.ts';
import type { Route } from './routes.ts';

/** The largest body of a request, in bytes: many times what any operation needs. */
const maxBody = 64 * 1024;

/** A request whose route is known. Its input has not been checked yet. */
export interface RouteRequest {
  readonly route: Route;
  /** The last segment of the path, with its digits decoded, if the route has an id there. */
  readonly id: string | undefined;
  readonly parameters: URLSearchParams;
}

/** The page of a list, in the client's own digits: an offset may be larger than any number of JavaScript. */
export interface Pagination {
  readonly limit: string;
  readonly offset: string;
}

/** The checked input of an operation. */
export interface Input {
  readonly variables: Readonly<Record<string, number>>;
  /** Undefined for a route that does not respond with a list. */
  readonly pagination: Pagination | undefined;
}

/** The header of the error for a body that was not sent as JSON, whose message is documented: which media type is accepted. */
const acceptsJsonOnly = { Accept: 'application/json' };

const firstPage: Pagination = { limit: String(pageSize.default), offset: '0' };

/** The parameters of every URL without a query string. */
const noParameters = new URLSearchParams();

/** @param query the query string with its question mark, or an empty text. */
export function readParameters(query: string): URLSearchParams {
  return query === '' ? noParameters : new URLSearchParams(query);
}

/**
 * Reads the id in the path and the page in the query string (docs/rest.md#ids, docs/rest.md#paging).
 * @returns an error response if one of them is invalid.
 */
export function readInput(
  { route, id: idText, parameters }: RouteRequest,
  viewer: Viewer,
): Input | HttpResponse {
  const targetError = findTargetError(route, parameters, viewer);
  if (targetError) return targetError;
  const variables: Record<string, number> = {};
  if (idText !== undefined) {
    const id = readInteger(idText);
    const isInvalid = id === undefined || id < 1;
    // An activation responds with the same error for every id that it cannot use (docs/rest.md#activation).
    if (isInvalid && !route.isMutation) return routeError(route, 400, messages.invalidId);
    if (isInvalid || id > largestId) return routeError(route, 404, route.missing ?? messages.notFound);
    variables.id = id;
  }
  const pagination = route.isList ? readPagination(parameters) : undefined;
  if (typeof pagination === 'string') return routeError(route, 400, pagination);
  if (pagination) {
    variables.limit = Number(pagination.limit);
    // No list is longer than there are ids, so a larger offset is beyond the end of the list as well.
    variables.offset = Math.min(Number(pagination.offset), largestId);
  }
  return { variables, pagination };
}

/**
 * Checks `targetUserId`, by which clients say whose data they ask for (docs/rest.md#who-sees-what). Only the viewer's own
 * id is valid: a response with the viewer's data to a request for another user's would be wrong.
 */
function findTargetError(
  route: Route,
  parameters: URLSearchParams,
  viewer: Viewer,
): HttpResponse | undefined {
  for (const text of parameters.getAll('targetUserId')) {
    const id = readInteger(text);
    if (id === undefined || id < 1) return routeError(route, 400, messages.invalidId);
    if (id !== viewer.id) return routeError(route, statusOf.FORBIDDEN, forbiddenUser(text));
  }
  return undefined;
}

/** The page that a query string asks for, or an error message if it is invalid. */
function readPagination(parameters: URLSearchParams): Pagination | string {
  if (parameters === noParameters) return firstPage;
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
export async function findBodyError(
  { request, message }: Exchange,
  route: Route,
): Promise<HttpResponse | undefined> {
  if (!route.body) return undefined;
  if (isEncoded(request)) return routeError(route, 415, messages.bodyEncoded, acceptsIdentityOnly);
  const body = message ? undefined : await readBody(request, maxBody);
  if (!message && !body) return routeError(route, 413, messages.bodyTooLarge, { Connection: 'close' });
  const { values, message: error } = route.body;
  if (!isJson(request)) return routeError(route, 400, error, acceptsJsonOnly);
  const content = body ? contentOf(body) : message?.content;
  return hasValues(content, values) ? undefined : routeError(route, 400, error);
}

/** What a body has in JSON; undefined if it is anything else. */
const contentOf = (body: Buffer) => (isUtf8(body) ? parseJson(new TextDecoder().decode(body)) : undefined);

function isJson({ headers }: IncomingMessage): boolean {
  return headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase() === 'application/json';
}

/** Whether the content of a body is an object that includes these values. */
function hasValues(content: unknown, values: Readonly<Record<string, unknown>>): boolean {
  return isRecord(content) && Object.entries(values).every(([name, value]) => content[name] === value);
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
