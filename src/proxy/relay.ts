/** Relays a request to the upstream unchanged, with the client's token, and returns the response. */

import { messages } from '../errors.ts';
import { readBody } from '../http/body.ts';
import { relayedMethods } from '../http/cors.ts';
import { restErrorResponse } from '../http/errorResponse.ts';
import type { Exchange } from '../http/exchange.ts';
import { isRead } from '../http/requestChecks.ts';
import type { HttpResponse } from '../http/response.ts';
import { restPath } from '../http/target.ts';
import type { Budget } from '../upstream/budget.ts';
import { wasNotSent } from '../upstream/errors.ts';
import { readResponseBody } from '../upstream/responseBody.ts';

/** The largest body of a relayed request, in bytes. */
const maxRequest = 64 * 1024;

/** Headers about one connection (RFC 9110, section 7.6.1), which are not passed on. */
const ofConnection = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];

/** Request headers that are not passed on: also those about the gateway as the target, about browser pages, and those that `fetch` sets. */
const notSent = new Set([
  ...ofConnection,
  'host',
  'content-length',
  'expect',
  'accept-encoding',
  'cookie',
  'origin',
  'referer',
  'x-request-id',
]);

/** Headers that tell the client's address and the proxies on the way. */
const isAboutTheWay =
  /^(x-forwarded|forwarded|via$|x-real-ip|x-client-ip|x-cluster|true-client|cf-|fastly-|sec-|proxy-)/;

/** Response headers that are not passed on: also the encoding of the body, which is decoded here, and those that the gateway sets. */
const notReturned = new Set([
  ...ofConnection,
  'content-length',
  'content-encoding',
  'set-cookie',
  'date',
  'server',
  'strict-transport-security',
  'vary',
  'age',
  'x-request-id',
  'x-content-type-options',
]);

/** Hands a request on, and the response back. */
export type Relay = (exchange: Exchange) => Promise<HttpResponse>;

export interface RelayOptions {
  /** The base URL of the upstream. */
  readonly base: string;
  readonly token: string;
  readonly budget: Budget;
  /** How long, in milliseconds, the upstream may take. */
  readonly longest: number;
  /** Called when the upstream could not be connected to: then a write has changed nothing there. */
  onNotSent?(): void;
}

/** A step up in a path, or what some server may take for one. */
const upwards = /(^|[/\\]|%2f|%5c)(\.|%2e)+(;[^/]*)?($|[/\\]|%2f|%5c)|[\\#]/i;

/** The upstream URL of a request target, which is always below the base. Undefined for a target that would leave it. */
function upstreamUrlFor(base: string, target: string): URL | undefined {
  const [path = ''] = target.split('?', 1);
  const address = base + target.slice(restPath.length);
  return upwards.test(path) || !URL.canParse(address) ? undefined : new URL(address);
}

/** Relays a request. Returns the response of the upstream, or an error in the envelope of the REST interface if there is none. */
export async function relay(
  exchange: Exchange,
  { base, token, budget, longest, onNotSent }: RelayOptions,
): Promise<HttpResponse> {
  const { request, target, message } = exchange;
  const { method = 'GET' } = request;
  exchange.operation = 'relayed';
  // It was set to the age of the copy.
  delete exchange.headers.Age;
  const place = upstreamUrlFor(base, target);
  if (!place) return restErrorResponse(404, messages.notFound);
  if (!relayedMethods.includes(method))
    return restErrorResponse(405, messages.methodNotAllowed, { Allow: relayedMethods.join(', ') });
  const body = isRead(exchange) ? Buffer.alloc(0) : (message?.body ?? (await readBody(request, maxRequest)));
  if (!body) return restErrorResponse(413, messages.bodyTooLarge, { Connection: 'close' });

  const deadline = AbortSignal.timeout(longest);
  budget.note();
  try {
    const response = await fetch(place, {
      method,
      headers: { ...headersOf(request.rawHeaders), Authorization: `Bearer ${token}` },
      ...(body.length > 0 && { body: new Uint8Array(body) }),
      // Redirects are left to the client: the token is sent to the upstream only.
      redirect: 'manual',
      // Not aborted when the client leaves: a write may have been done, and a read may be shared with other clients.
      signal: deadline,
    });
    const content = await readResponseBody(response);
    if (!content) return restErrorResponse(502, messages.upstreamTooLarge);
    return {
      status: response.status,
      headers: returned(response, content),
      body: content,
      isRelayed: true,
    };
  } catch (error) {
    if (wasNotSent(error)) onNotSent?.();
    if (deadline.aborted) return restErrorResponse(504, messages.upstreamTooSlow);
    return restErrorResponse(502, messages.upstreamUnreachable);
  }
}

/** The headers of a request that concern the upstream. A `Connection` header may name more that do not. */
function headersOf(raw: readonly string[]): Record<string, string> {
  // A Map, since a client may name a header `constructor`.
  const headers = new Map<string, string>();
  const named = new Set<string>();
  for (let index = 0; index < raw.length; index += 2) {
    const name = raw[index]?.toLowerCase() ?? '';
    const value = raw[index + 1] ?? '';
    if (name === 'connection') for (const each of value.split(',')) named.add(each.trim().toLowerCase());
    // The client's address and its way here are private.
    if (notSent.has(name) || name === 'authorization' || isAboutTheWay.test(name)) continue;
    const before = headers.get(name);
    headers.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  for (const name of named) headers.delete(name);
  return Object.fromEntries(headers);
}

function returned({ headers, status }: Response, body: Buffer): Record<string, string | number> {
  const ofThisConnection = new Set((headers.get('connection') ?? '').toLowerCase().split(/\s*,\s*/));
  const kept = [...headers].filter(
    ([name]) =>
      !notReturned.has(name) && !ofThisConnection.has(name) && !/^(access-control|alt|ratelimit)/.test(name),
  );
  const said = headers.get('content-length');
  // The length that a response without a body states is that of the body that GET has (RFC 9110, section 8.6). If that is
  // encoded, its length here is another.
  const isUnknown = said === null || status === 304 || headers.has('content-encoding');
  const length = body.length === 0 && isUnknown ? {} : { 'Content-Length': body.length || Number(said) };
  return {
    'cache-control': 'private, no-store',
    ...Object.fromEntries(kept),
    ...length,
    Vary: 'Authorization',
  };
}
