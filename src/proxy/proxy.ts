/**
 * REST in front of an upstream: a caching reverse proxy. Clients get the upstream's status, headers and bytes.
 *
 * Promises that no read gets a response from before the last write of its account, through whichever gateway it was written. Before
 * the response to a write is sent, all gateways drop the stored responses of the account. Before a read gets a stored response, this
 * gateway has received every announcement that was made before the read.
 *
 * May be replaced by any reverse proxy that can forget the responses of one account.
 */

import { LRUCache } from 'lru-cache';
import pLimit, { type LimitFunction } from 'p-limit';
import { allows } from '../auth/scopes.ts';
import type { Viewer } from '../auth/viewer.ts';
import { messages, scopeNeeded } from '../errors.ts';
import { restErrorResponse } from '../http/errorResponse.ts';
import { type Exchange, restPath } from '../http/exchange.ts';
import { atMost } from '../http/lruLimit.ts';
import { isRead } from '../http/request.ts';
import { type HttpResponse, isResponse, matches } from '../http/response.ts';
import type { UpstreamAccess, UpstreamAccounts } from '../upstream/access.ts';
import { readRetryAfter } from '../upstream/upstream.ts';
import { failed, forward, readRequest, type UpstreamRequest, type UpstreamResponse } from './forward.ts';
import { createReadCache, type ReadCache, type ReadCacheOptions, type ReadResult } from './readCache.ts';

/** `maxBytes` of 0 switches the cache off. */
export interface ProxyOptions extends ReadCacheOptions {
  readonly accounts: UpstreamAccounts;
}

/** Returns the upstream's response to a request of the REST API. */
export type RestProxy = (exchange: Exchange, viewer: Viewer) => Promise<HttpResponse>;

/** Headers of reads that ask for a part of a response, or for a certain version. They are forwarded, and nothing is stored. */
const uncached = ['range', 'if-range', 'if-match', 'if-unmodified-since'];

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

  const inTurn = createReadLimits();
  return async (exchange, viewer) => {
    exchange.operation = 'forwarded';
    const writes = !isRead(exchange) || overrides.some((name) => name in exchange.request.headers);
    if (writes && !allows(viewer.scope, 'activate')) return restErrorResponse(403, scopeNeeded('activate'));
    const { unreachable } = accounts;
    const access = accounts.accessFor(viewer);
    if (!access) return restErrorResponse(unreachable.status, unreachable.message, { 'Retry-After': '5' });
    const request = await readRequest(exchange, accounts.base);
    if (isResponse(request)) return request;
    const send: Send = (given) => sendFor(viewer, access, given, accounts.longest);
    const sendRead: Send = (given) => inTurn(access.accountId, () => send(given));
    if (writes) return respond(exchange, { given: await write(exchange, access, send, request) });
    if (!cache || uncached.some((name) => name in request.headers))
      return respond(exchange, { given: await sendRead(request) });
    return readThrough(cache, exchange, access, request, sendRead);
  };
}

/** How many reads of an account may be in flight, and how many more may wait. */
const maxReads = 16;
const maxWaiting = 200;

/** Limits the concurrent reads of each account, so that one client cannot hold all connections. Writes do not wait. */
function createReadLimits() {
  const limits = new LRUCache<number, LimitFunction>(atMost(10_000));
  const tooMany = failed(restErrorResponse(503, messages.tooBusy, { 'Retry-After': '1' }), false);
  return (accountId: number, read: () => Promise<UpstreamResponse>) => {
    const limit = limits.get(accountId) ?? pLimit(maxReads);
    limits.set(accountId, limit);
    return limit.pendingCount < maxWaiting ? limit(read) : Promise.resolve(tooMany);
  };
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
  // The token of the client is valid. The configured token of the gateway is not.
  return tokenId === undefined ? given : failed(restErrorResponse(502, messages.upstreamUnusable), true);
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
  return time !== undefined && modified !== undefined && Date.parse(modified) <= Date.parse(time);
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
