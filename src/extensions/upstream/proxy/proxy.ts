/**
 * REST in front of an upstream: a caching reverse proxy. Clients get the upstream's status, headers and bytes.
 *
 * Promises that no read gets a response from before the last write of its account, through whichever gateway it was written. Before
 * the response to a write is sent, all gateways drop the stored responses of the account. Before a read gets a stored response, this
 * gateway has received every announcement that was made before the read.
 *
 * To replace it: use any reverse proxy that can forget the responses of one account.
 */

import type { IncomingMessage } from 'node:http';
import { allows } from '../../../auth/scopes.ts';
import { type Recheck, unauthorized, type Viewer } from '../../../auth/viewer.ts';
import { messages, scopeNeeded } from '../../../errors.ts';
import { forwardedMethods } from '../../../http/cors.ts';
import { errorResponse, restErrorResponse } from '../../../http/errorResponse.ts';
import { type Exchange, restPath } from '../../../http/exchange.ts';
import { asksForEvents, isRead, readBody } from '../../../http/request.ts';
import { type HttpResponse, isResponse, matches } from '../../../http/response.ts';
import {
  type Headers,
  isUnconnected,
  sendRequest,
  type UpstreamRequest,
  type UpstreamResponse,
} from '../client/http.ts';
import { readRetryAfter, UpstreamBusy } from '../client/upstream.ts';
import { messages as upstreamMessages } from '../messages.ts';
import type { Forwarding, UpstreamAccess } from '../mirror/access.ts';
import { createReadCache, type ReadCache, type ReadCacheOptions, type ReadResult } from './readCache.ts';

/** `maxBytes` of 0 switches the cache off. */
export interface ProxyOptions extends ReadCacheOptions {
  readonly accounts: Forwarding;
}

type RestProxy = (exchange: Exchange, viewer: Viewer, recheck: Recheck) => Promise<HttpResponse>;

/** Headers of reads that ask for a part of a response, or for a certain version. They are forwarded, and nothing is stored. */
const uncached = ['range', 'if-match', 'if-unmodified-since'];

/** Headers with which some servers treat a read as another method. Such a request counts as a write. */
const overrides = ['x-http-method-override', 'x-http-method', 'x-method-override'];

export function createProxy({ accounts, feed, lifetime, maxBytes }: ProxyOptions): RestProxy {
  const cache = maxBytes === 0 ? undefined : createReadCache({ feed, lifetime, maxBytes });
  if (cache) {
    accounts.onWrite(cache.drop);
    feed.subscribe((change) => {
      // A write through another process is announced as a change of the user.
      if (change.table === undefined || change.table === 'User')
        cache.drop(change.kind === 'user' ? change.userId : undefined);
    });
  }

  return async (exchange, viewer, recheck) => {
    exchange.operation = 'forwarded';
    const writes = !isRead(exchange) || overrides.some((name) => name in exchange.request.headers);
    const refusal = (now: Viewer | null) => {
      if (!now) return unauthorized(exchange);
      return writes && !allows(now.scope, 'activate')
        ? restErrorResponse(403, scopeNeeded('activate'))
        : undefined;
    };
    const early = refusal(viewer);
    if (early) return early;
    // The service announces no changes. What the mirror notices is some time behind what the service responds.
    if (asksForEvents(exchange)) return restErrorResponse(406, upstreamMessages.notFollowed);
    const access = await accounts.accessFor(viewer);
    if (!access) return errorResponse('rest', accounts.unreachable, { 'Retry-After': '5' });
    const request = await readRequest(exchange, accounts.base);
    if (isResponse(request)) return request;
    const sendNow: Send = async (given) => {
      // It may have waited for its body, or for its turn.
      const refused = refusal(await recheck(exchange, viewer));
      return refused ? failed(refused, false) : sendFor(viewer, access, given, accounts.longest);
    };
    const send: Send = (given) =>
      access.inTurn(writes ? 'write' : 'read', () => sendNow(given)).catch(tooMany);
    if (writes) return respond(exchange, { given: await write(exchange, access, send, request) });
    if (!cache || uncached.some((name) => name in request.headers))
      return respond(exchange, { given: await send(request) });
    return readThrough(cache, exchange, access, request, send);
  };
}

/** The result of a request that got no turn. */
function tooMany(error: unknown): UpstreamResponse {
  if (!(error instanceof UpstreamBusy)) throw error;
  return failed(restErrorResponse(503, messages.tooBusy, { 'Retry-After': String(error.retryAfter) }), false);
}

type Send = (request: UpstreamRequest) => Promise<UpstreamResponse>;

async function sendFor(
  { tokenId }: Viewer,
  access: UpstreamAccess,
  request: UpstreamRequest,
  longest: number,
): Promise<UpstreamResponse> {
  const { budget, token } = access;
  budget.note();
  const given = await forward(request, token, longest);
  const { status, headers } = given;
  // A 503 may be about this path alone.
  if (status === 429) budget.pauseFor(readRetryAfter(headers['retry-after']));
  if (status !== 401) return given;
  access.noteRejected();
  // The token of the client is valid. The configured token of the gateway is not, so nothing was done.
  return tokenId === undefined
    ? given
    : failed(restErrorResponse(502, upstreamMessages.upstreamUnusable), false);
}

async function write(
  exchange: Exchange,
  access: UpstreamAccess,
  send: Send,
  request: UpstreamRequest,
): Promise<UpstreamResponse> {
  const given = await send(request);
  const { status, wasSent } = given;
  // A write that was rejected (4xx), or never sent, has changed nothing.
  if (wasSent && (status < 400 || status >= 500))
    await access.noteWrite(exchange.path.slice(restPath.length));
  return given;
}

async function readThrough(
  cache: ReadCache,
  exchange: Exchange,
  access: UpstreamAccess,
  { headers, ...request }: UpstreamRequest,
  send: Send,
): Promise<HttpResponse> {
  // The cache has whole responses. Whether the client has the response already is decided here.
  const { 'if-none-match': tags, 'if-modified-since': time, ...unconditional } = headers;
  const { target } = exchange;
  const result = await cache.read({ access, target, request: { ...request, headers: unconditional }, send });
  const { given } = result;
  exchange.cache = result.age === undefined ? 'miss' : 'hit';
  if (!isUnmodified(given, tags, time)) return respond(exchange, result);
  const kept = Object.entries(given.headers).filter(([name]) => !name.startsWith('content-'));
  return respond(exchange, {
    ...result,
    given: { ...given, status: 304, headers: Object.fromEntries(kept), body: Buffer.alloc(0) },
  });
}

/** Whether a client has the response already (RFC 9110, section 13.2.2). */
function isUnmodified(
  { status, headers: { etag, 'last-modified': modified } }: UpstreamResponse,
  tags: string | undefined,
  time: string | undefined,
): boolean {
  if (status !== 200) return false;
  if (tags !== undefined) return etag !== undefined && matches(tags, etag.replace(/^W\//, ''));
  return Date.parse(modified ?? '') <= Date.parse(time ?? '');
}

/** The response for the client: the upstream's, with the request id, `Age`, and the gateway's own rate limits. */
function respond(exchange: Exchange, { given, age }: ReadResult): HttpResponse {
  if (given.error) return given.error;
  const { status, body } = given;
  const headers: Record<string, string> = {
    ...given.headers,
    ...(age !== undefined && { age: String(age) }),
  };
  const hasRates = Object.keys(headers).some((name) => /^(x-)?ratelimit/.test(name));
  for (const name of Object.keys(exchange.headers)) {
    const isRate = /^RateLimit/i.test(name);
    if (isRate ? hasRates : name.toLowerCase() in headers && name !== 'Vary') delete exchange.headers[name];
  }
  // The values of both are joined under this name.
  const { vary, ...others } = headers;
  return {
    status,
    headers: { ...others, ...(vary !== undefined && { Vary: vary }) },
    body,
    isForwarded: true,
  };
}

/** The largest body of a request, in bytes. */
const maxRequest = 64 * 1024;

/** Headers about one connection (RFC 9110, section 7.6.1), which are not passed on. */
const ofConnection = /^(connection|keep-alive|proxy-.+|te|trailer|transfer-encoding|upgrade|content-length)$/;

/** Request headers about the gateway or about browser pages, and headers that this module sets. */
const notSent = /^(host|expect|authorization|cookie|origin|referer|dovetail-position|x-request-id)$/;

/** Headers with the address of the client, or about proxies on the way. */
const isAboutTheWay =
  /^(x-forwarded|forwarded|via$|x-real-ip|x-client-ip|x-cluster|true-client|cf-|fastly-|sec-)/;

/** Response headers about the upstream as a web site, and the request id, which the gateway sets. */
const notReturned =
  /^(set-cookie$|server$|strict-transport-security$|x-request-id$|access-control|alt-svc|sec-|nel$|report-to|reporting-endpoints)/;

/** The result if the upstream gives no response. */
const failed = (error: HttpResponse, wasSent: boolean): UpstreamResponse => ({
  status: error.status,
  headers: {},
  body: error.body,
  error,
  wasSent,
});

/** A step up in a path, or characters that some server may read as one. */
const upwards = /(\/|%2f|%5c)(\.|%2e)+(;[^/]*)?($|\/|%2f|%5c)|[\\#]/i;

/** Makes the request for the upstream. Returns the error response to a request that cannot be forwarded. */
async function readRequest(exchange: Exchange, base: string): Promise<UpstreamRequest | HttpResponse> {
  const { request, target } = exchange;
  const { method = 'GET' } = request;
  const [path = ''] = target.split('?', 1);
  if (upwards.test(path)) return restErrorResponse(404, messages.notFound);
  if (!forwardedMethods.includes(method))
    return restErrorResponse(405, messages.methodNotAllowed, { Allow: forwardedMethods.join(', ') });
  const body = isRead(exchange) ? Buffer.alloc(0) : await readBody(request, maxRequest);
  if (!body) return restErrorResponse(413, messages.bodyTooLarge, { Connection: 'close' });
  const url = new URL(base);
  const below = target.slice(restPath.length);
  return { method, url, path: url.pathname + below, headers: headersOf(request), body };
}

/**
 * Sends a request to the upstream.
 * @param token a token of the account.
 * @param longest how long, in milliseconds, the upstream may take.
 */
async function forward(request: UpstreamRequest, token: string, longest: number): Promise<UpstreamResponse> {
  // Not aborted when the client leaves: a write may have been done, and a read may be shared with other clients.
  const deadline = AbortSignal.timeout(longest);
  try {
    const { status, headers, body } = await sendRequest(request, token, deadline);
    if (!body) return failed(restErrorResponse(502, upstreamMessages.upstreamTooLarge), true);
    // A 1xx cannot be sent to the client as the response.
    if (status < 200) return failed(restErrorResponse(502, upstreamMessages.upstreamUnreachable), true);
    return { status, headers: returned(status, headers, body), body, wasSent: true };
  } catch (error) {
    const [status, message] = deadline.aborted
      ? [504, upstreamMessages.upstreamTooSlow]
      : [502, upstreamMessages.upstreamUnreachable];
    return failed(restErrorResponse(status, message), !isUnconnected(error));
  }
}

/** The header names in a `Connection` header: these headers concern one connection too. */
const namesIn = (connection: string | undefined) =>
  new Set((connection ?? '').toLowerCase().split(/\s*,\s*/));

/** The request headers for the upstream. The address of the client and the proxies on its way are private. */
function headersOf({ headersDistinct: { connection, ...others } }: IncomingMessage): Headers {
  const named = namesIn(connection?.join());
  const isLeftOut = (name: string) =>
    named.has(name) || [ofConnection, notSent, isAboutTheWay].some((left) => left.test(name));
  const kept = Object.entries(others).filter(([name]) => !isLeftOut(name));
  return Object.fromEntries(kept.map(([name, values = []]) => [name, values.join(', ')]));
}

function returned(status: number, headers: IncomingMessage['headers'], body: Buffer): Headers {
  const named = namesIn(headers.connection);
  const kept = Object.entries(headers).flatMap(([name, value]) =>
    typeof value !== 'string' || ofConnection.test(name) || named.has(name) || notReturned.test(name)
      ? []
      : [[name, value] as const],
  );
  // The response to a HEAD states the length that the body of GET would have (RFC 9110, section 8.6).
  const said = body.length === 0 && status !== 304 ? headers['content-length'] : undefined;
  const length = body.length > 0 ? String(body.length) : said;
  return { ...Object.fromEntries(kept), ...(length !== undefined && { 'content-length': length }) };
}
