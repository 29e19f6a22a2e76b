/**
 * Reads requests: whether one only reads, asks for a page, or has its host and token exactly once; which media types the client
 * accepts; and the body, up to a limit.
 */

import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import Negotiator from 'negotiator';
import { messages } from '../errors.ts';
import { errorResponse } from './errorResponse.ts';
import { type Exchange, forwardingHeaders } from './exchange.ts';
import { isLoopback, isOwnName, nameIn } from './hostName.ts';
import { type HttpResponse, isResponse } from './response.ts';

/** Whether the request only reads. A HEAD is handled as a GET: Node leaves out the body of its response. */
export function isRead({ request: { method } }: Exchange): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** The media types at the addresses of pages. Among types of equal weight the client gets the first. */
const pageTypes = [
  'application/json',
  'application/graphql-response+json',
  'text/plain',
  'text/html',
] as const;

export const asksForPage = (exchange: Exchange): boolean => isRead(exchange) && isFromBrowser(exchange);

/**
 * Whether a browser sends the request because it opens an address. With a token it does not: a browser then sends none. The `Accept`
 * header alone is not enough, since Java's clients prefer HTML by default.
 */
export function isFromBrowser({ request: { headers } }: Exchange): boolean {
  const { accept, authorization } = headers;
  return authorization === undefined && acceptedOf(pageTypes, accept)[0] === 'text/html';
}

/** A name or an address, with or without a port (RFC 3986, section 3.2). */
const hostForm = /^(?:[\w.~!$&'()*+,;=%-]*|\[[\w:.]+\])(?::\d*)?$/;

/**
 * Whether a request comes from the machine itself, and to one of its own names. A proxy there forwards requests of other machines:
 * it is noticed by `trustedProxies`, by its headers, or by the name that the client has for it.
 */
export const isFromLoopback = ({ socket, headers }: IncomingMessage, trustedProxies: number): boolean =>
  trustedProxies === 0 &&
  isLoopback(socket.remoteAddress ?? '') &&
  isOwnName(nameIn(headers.host ?? '')) &&
  !forwardingHeaders.some((name) => name in headers);

const badHeader = (what: string) => `${messages.badRequest}: ${what}`;

/** The messages for requests that a proxy in front may have read in another way. */
export const ambiguities = {
  coding: badHeader('Transfer-Encoding must be chunked, or left out'),
  noHost: badHeader('the request has no Host header'),
  wrongHost: badHeader('Host must be a name or an address, with or without a port'),
  twoHosts: badHeader('the request has more than one Host header'),
  twoTokens: badHeader('the request has more than one Authorization header'),
} as const;

/**
 * The message for a request that has no valid Host, more than one Host or Authorization (RFC 9112, section 3.2; RFC 9110, section
 * 11.6.2), or a transfer coding besides `chunked` (RFC 9112, section 6.1); undefined for any other. Node uses the first of several
 * headers, and passes such a body on as it came, but a proxy in front may have read it in another way.
 */
export function ambiguityOf({ httpVersion, headers, rawHeaders }: IncomingMessage): string | undefined {
  const { 'transfer-encoding': coding = 'chunked' } = headers;
  if (coding.toLowerCase() !== 'chunked') return ambiguities.coding;
  if (headers.host === undefined && httpVersion === '1.1') return ambiguities.noHost;
  if (headers.host !== undefined && !hostForm.test(headers.host)) return ambiguities.wrongHost;
  let hosts = 0;
  let tokens = 0;
  // Names are at even indexes, each followed by its value.
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? '';
    // Comparing the length first is faster, and this code sees every header of every request.
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++;
    else if (name.length === 13 && name.toLowerCase() === 'authorization') tokens++;
  }
  if (hosts > 1) return ambiguities.twoHosts;
  return tokens > 1 ? ambiguities.twoTokens : undefined;
}

/**
 * The longest `Accept`, in characters, that is read: those of browsers have less than 200. One of 16 KiB, the most that Node reads, would take
 * 20 ms. A server may ignore the header (RFC 9110, section 12.5.1).
 */
const longestAccept = 1_000;

/**
 * Those of the media types that a client accepts (RFC 9110, section 12.5.1), the preferred one first; all of them without a header.
 * A header that is too long counts as none. Only UTF-8 is available. Parameters other than that are ignored: clients use them to name what is sent anyway.
 */
export function acceptedOf<Type extends string>(
  types: readonly Type[],
  given: string | undefined,
): readonly Type[] {
  const accept = given !== undefined && given.length > longestAccept ? undefined : given;
  // Some clients leave out the hyphen.
  const known = accept?.replace(/;(?!\s*(?:q|charset)\s*=)[^,;]*/gi, '').replace(/=("?utf)8\b/gi, '=$1-8');
  const accepted = new Negotiator({ headers: { accept: known || undefined } }).mediaTypes(
    types.map((type) => `${type};charset=utf-8`),
  );
  return accepted.flatMap((each) => types.find((type) => each === `${type};charset=utf-8`) ?? []);
}

/** Whether a client prefers an event stream to JSON, and names it: clients that accept anything get JSON. */
export const asksForEvents = ({ request: { method, headers } }: Exchange): boolean =>
  method === 'GET' &&
  /\btext\/event-stream\b/i.test(headers.accept ?? '') &&
  acceptedOf(['application/json', 'text/event-stream'], headers.accept)[0] === 'text/event-stream';

/**
 * The whole body, or undefined if it has more bytes than the limit. The rest of a body that is too large is not read, so the
 * response should close the connection. Never settles if the client leaves before the end.
 */
export function readBody(request: IncomingMessage, limit: number): Promise<Buffer | undefined> {
  if (Number(request.headers['content-length']) > limit) return Promise.resolve(undefined);
  return new Promise((resolve) => {
    let body: Buffer = Buffer.alloc(0);
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      const before = size;
      size += chunk.length;
      if (size > limit) {
        request.pause();
        resolve(undefined);
      } else if (before === 0) {
        body = chunk;
      } else {
        // Pieces are not kept: one of a single byte takes some hundred bytes of memory.
        if (size > body.length) body = Buffer.concat([body], 2 * size);
        chunk.copy(body, before);
      }
    });
    request.on('end', () => resolve(body.length === size ? body : body.subarray(0, size)));
    // The client has left, and needs no response.
    request.on('error', () => {});
  });
}

/** The bytes of a body, or the response to a request whose body is encoded, or larger than the limit in bytes. */
export async function readPlain(
  { endpoint, request }: Pick<Exchange, 'endpoint' | 'request'>,
  limit: number,
  tooLarge: string = messages.bodyTooLarge,
): Promise<Buffer | HttpResponse> {
  const fail = (status: number, message: string, headers: Record<string, string>) =>
    errorResponse(endpoint, { code: 'BAD_USER_INPUT', status, message }, { Connection: 'close', ...headers });
  // Which codings are accepted: RFC 9110, section 15.5.16.
  if (!/^(identity)?$/i.test(request.headers['content-encoding'] ?? ''))
    return fail(415, messages.bodyEncoded, { 'Accept-Encoding': 'identity' });
  return (await readBody(request, limit)) ?? fail(413, tooLarge, {});
}

/** The bytes of a body of text, or the response to a request whose body cannot be read. */
export async function readText(
  exchange: Pick<Exchange, 'endpoint' | 'request'>,
  maxKilobytes: number,
): Promise<Buffer | HttpResponse> {
  const tooLarge = `The request body is larger than ${maxKilobytes} KiB, the most that is allowed`;
  const body = await readPlain(exchange, maxKilobytes * 1024, tooLarge);
  if (isResponse(body) || isUtf8(body)) return body;
  return errorResponse(exchange.endpoint, { code: 'BAD_USER_INPUT', message: messages.bodyNotUtf8 });
}
