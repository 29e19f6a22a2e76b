/** Forwards one request to the upstream unchanged, with a token of its account, and reads the whole response. */

import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import { messages, systemCodeOf } from '../errors.ts';
import { forwardedMethods } from '../http/cors.ts';
import { restErrorResponse } from '../http/errorResponse.ts';
import { type Exchange, restPath } from '../http/exchange.ts';
import { isRead, readBody } from '../http/request.ts';
import type { HttpResponse } from '../http/response.ts';
import { isUnconnected, readResponseBody } from '../upstream/upstream.ts';

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

/** Headers of a request or a response, by their names in lower case. */
export type Headers = Readonly<Record<string, string>>;

/** A request as the upstream gets it. */
export interface UpstreamRequest {
  readonly method: string;
  /** The base URL of the upstream. */
  readonly url: URL;
  /** The path and the query as the client has sent them, below the path of the base URL. */
  readonly path: string;
  /** Without `Authorization`. */
  readonly headers: Headers;
  readonly body: Buffer;
}

/** A response of the upstream, with the headers that concern the client; or the gateway's own error if there is none. */
export interface UpstreamResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
  /** The gateway's own error response, if the upstream gave none. */
  readonly error?: HttpResponse;
  /** Whether the upstream may have got the request. */
  readonly wasSent: boolean;
}

/** The result if the upstream gives no response. */
export const failed = (error: HttpResponse, wasSent: boolean): UpstreamResponse => ({
  status: error.status,
  headers: {},
  body: error.body,
  error,
  wasSent,
});

/** A step up in a path, or characters that some server may read as one. */
const upwards = /(^|[/\\]|%2f|%5c)(\.|%2e)+(;[^/]*)?($|[/\\]|%2f|%5c)|[\\#]/i;

/** Makes the request for the upstream. Returns the error response to a request that cannot be forwarded. */
export async function readRequest(exchange: Exchange, base: string): Promise<UpstreamRequest | HttpResponse> {
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
export async function forward(
  request: UpstreamRequest,
  token: string,
  longest: number,
): Promise<UpstreamResponse> {
  // Not aborted when the client leaves: a write may have been done, and a read may be shared with other clients.
  const deadline = AbortSignal.timeout(longest);
  try {
    const response = await send(request, token, deadline);
    const { statusCode: status = 0 } = response;
    const body = await readResponseBody(response);
    if (!body) return failed(restErrorResponse(502, messages.upstreamTooLarge), true);
    // A 1xx cannot be sent to the client as the response.
    if (status < 200) return failed(restErrorResponse(502, messages.upstreamUnreachable), true);
    return { status, headers: returned(response, body), body, wasSent: true };
  } catch (error) {
    const [status, message] = deadline.aborted
      ? [504, messages.upstreamTooSlow]
      : [502, messages.upstreamUnreachable];
    return failed(restErrorResponse(status, message), !isUnconnected(error));
  }
}

/** Sends a request by `node:http`: `fetch` would add headers of its own, and decode the body. */
async function send(given: UpstreamRequest, token: string, signal: AbortSignal): Promise<IncomingMessage> {
  const { method, url, path, headers, body } = given;
  const isReading = method === 'GET' || method === 'HEAD';
  const request = (url.protocol === 'https:' ? https : http).request(url, {
    method,
    path,
    headers: {
      ...headers,
      authorization: `Bearer ${token}`,
      ...(!isReading && { 'content-length': body.length }),
    },
    signal,
  });
  // The body of the response reports errors after its head as well.
  request.on('error', () => {});
  request.end(body);
  try {
    // The event has one argument, the response.
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    return response;
  } catch (error) {
    // The upstream may have closed the connection while it was idle (https://nodejs.org/api/http.html#requestreusedsocket).
    if (isReading && request.reusedSocket && systemCodeOf(error) === 'ECONNRESET')
      return send(given, token, signal);
    throw error;
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

function returned({ headers, statusCode }: IncomingMessage, body: Buffer): Headers {
  const named = namesIn(headers.connection);
  const kept = Object.entries(headers).flatMap(([name, value]) =>
    typeof value !== 'string' || ofConnection.test(name) || named.has(name) || notReturned.test(name)
      ? []
      : [[name, value] as const],
  );
  // The response to a HEAD states the length that the body of GET would have (RFC 9110, section 8.6).
  const said = body.length === 0 && statusCode !== 304 ? headers['content-length'] : undefined;
  const length = body.length > 0 ? String(body.length) : said;
  return { ...Object.fromEntries(kept), ...(length !== undefined && { 'content-length': length }) };
}
