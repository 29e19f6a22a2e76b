/** HTTP responses, whole ones and streams, and sending them. */

import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream as NodeReadableStream } from 'node:stream/web';
import type { Forms } from './compression.ts';
import type { Exchange } from './exchange.ts';

export interface HttpResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | number>>;
  readonly body: Buffer;
  /** The `operation` of the exchange that the response was made for. A cached response sets it in later exchanges. */
  readonly operation?: string | undefined;
  /** The code of the first error of a GraphQL response, for the log. */
  readonly errorCode?: string | undefined;
  /** Set if a client may ask for the response conditionally. */
  readonly validator?: Validator;
  /** The forms of a response that is sent more than once. */
  readonly forms?: Forms;
  /** Whether it is a response of the upstream, to be sent unchanged. */
  readonly isForwarded?: boolean;
}

/** A response whose body is sent piece by piece, such as the events of a subscription. */
export interface StreamedResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly stream: ReadableStream<Uint8Array> | null;
  /** Called once nothing more is sent. */
  ended(): void;
}

/**
 * Tells a response from what a step gives instead of one, such as the viewer or the task of a request. That must be nothing whose
 * members a client chooses.
 */
export function isResponse<Other extends object>(given: Other | HttpResponse): given is HttpResponse {
  return 'status' in given;
}

export interface Validator {
  /** The strong entity tag of the body. */
  readonly etag: string;
  /** The headers of a 304: those that a cache needs (RFC 9110, section 15.4.5). */
  readonly headers: Readonly<Record<string, string>>;
}

/** A response with a line of text. */
export const textResponse = (status: number, text: string, headers?: Readonly<Record<string, string>>) =>
  bodyResponse(status, 'text/plain; charset=utf-8', `${text}\n`, headers);

/** A response with a body of JSON text. */
export const jsonResponse = (status: number, text: string, headers?: Readonly<Record<string, string>>) =>
  bodyResponse(status, 'application/json; charset=utf-8', text, headers);

function bodyResponse(
  status: number,
  type: string,
  text: string,
  others?: Readonly<Record<string, string>>,
): HttpResponse {
  const body = Buffer.from(text);
  // Errors are not to be cached: the next request may succeed.
  const unstored = status >= 400 && { 'Cache-Control': 'no-store' };
  const headers = { 'Content-Type': type, 'Content-Length': body.length, ...unstored, ...others };
  return { status, body, headers };
}

/**
 * Makes the response one that clients can ask for conditionally. The tag is strong (RFC 9110, section 8.8.1): equal tags
 * mean equal bytes. `no-cache` makes a cache ask every time, and `private` excludes shared caches.
 * @param vary the request headers that the response depends on.
 * @param others further headers, which a 304 has as well.
 */
export function revalidated(
  given: HttpResponse,
  vary: string,
  others: Readonly<Record<string, string>> = {},
): HttpResponse {
  const type = String(given.headers['Content-Type']);
  // The same bytes of another media type are another representation.
  const etag = `"${createHash('sha256').update(type).update(given.body).digest('base64url')}"`;
  const headers = { ETag: etag, 'Cache-Control': 'private, no-cache', Vary: vary, ...others };
  return { ...given, headers: { ...given.headers, ...headers }, validator: { etag, headers } };
}

/** The largest body, in bytes, for which copying it takes less time than a write of its own. */
const largestText = 8 * 1024;

/** Sends the response, or a 304 without a body if the client already has it. */
export function send(exchange: Exchange, given: HttpResponse): void {
  const { request, response } = exchange;
  const { status, headers, body, validator } = given;
  // A request that took too long, or could not be read to its end, may already have got an error response.
  if (response.headersSent) return;
  exchange.operation ??= given.operation;
  exchange.errorCode = given.errorCode;
  const condition = request.headers['if-none-match'];
  if (condition !== undefined && validator && matches(condition, validator.etag)) {
    response.writeHead(304, headersOf(exchange, validator.headers)).end();
  } else {
    response.writeHead(status, headersOf(exchange, headers));
    // Node writes a string in one piece with the head. In Latin-1 each byte is one character, so any bytes survive.
    if (body.length <= largestText) response.end(body.toString('latin1'), 'latin1');
    else response.end(body);
  }
}

type Headers = HttpResponse['headers'];

/** Names and values in turn: the form of headers that Node handles fastest. To make it so is several times as fast as `flat`. */
function flattened(headers: Headers): (string | number)[] {
  const all = [];
  for (const name in headers) all.push(name, headers[name] ?? '');
  return all;
}

/** All headers: the response's own and those of the exchange, which replace those of the same name. Values of `Vary` are joined. */
function headersOf({ headers: others }: Exchange, own: Headers): (string | number)[] {
  const all = flattened(own);
  for (const name in others) {
    if (own[name] !== undefined) {
      const isVaried = own.Vary !== undefined && others.Vary !== undefined;
      return flattened({ ...own, ...others, ...(isVaried && { Vary: `${own.Vary}, ${others.Vary}` }) });
    }
    all.push(name, others[name] ?? '');
  }
  return all;
}

/** Whether `If-None-Match` has the given tag, by the weak comparison (RFC 9110, section 13.1.2). */
export function matches(condition: string, etag: string): boolean {
  if (condition === etag) return true;
  return condition.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag);
}

/**
 * Sends the stream piece by piece, no faster than the client reads it, until it ends, or the client leaves. Of a client that
 * stops reading, the connection is closed (`connections.ts`).
 */
export async function sendStream(
  exchange: Exchange,
  { status, headers: own, stream, ended }: StreamedResponse,
): Promise<void> {
  const { request, response } = exchange;
  const isSentBefore = response.headersSent;
  if (!isSentBefore) response.writeHead(status, headersOf(exchange, own));
  try {
    // The response to a HEAD has no body (RFC 9110, section 9.3.2).
    if (stream && !isSentBefore && request.method !== 'HEAD')
      // The same class, whose types of the DOM and of Node differ.
      await pipeline(Readable.fromWeb(stream as NodeReadableStream), response);
    // Not awaited: it may never settle while a read is pending.
    else void stream?.cancel().catch(() => {});
    if (!isSentBefore) response.end();
  } catch {
    // The response is destroyed: the stream has failed, or the client has left.
  } finally {
    ended();
  }
}
