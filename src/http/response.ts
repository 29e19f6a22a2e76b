/** What an HTTP response is, whole or streamed, and how one is made. */

import { createHash } from 'node:crypto';
import type { ReadableStream } from 'node:stream/web';

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
  /** Whether it is a response of another service, to be sent unchanged. */
  readonly isForwarded?: boolean;
}

/** A response whose body is sent piece by piece, such as the events of a subscription. */
export interface StreamedResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly stream: ReadableStream<Uint8Array | string>;
  /** Aborted when the stream has to break off. */
  readonly signal?: AbortSignal;
  /** Called once nothing more is sent. */
  ended(): void;
}

/**
 * Distinguishes a response from another result of a step, such as the viewer or the task of a request. The other result must not
 * have members that a client chooses.
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

/** The forms of a response that were made so far. */
export interface Forms {
  plain?: HttpResponse;
  /** A promise while it is being compressed. */
  gzip?: HttpResponse | Promise<HttpResponse> | undefined;
}

export const textResponse = (status: number, text: string, headers?: Readonly<Record<string, string>>) =>
  bodyResponse(status, 'text/plain; charset=utf-8', `${text}\n`, headers);

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

/** Whether `If-None-Match` has the given tag, by the weak comparison (RFC 9110, section 13.1.2). */
export function matches(condition: string, etag: string): boolean {
  return condition.split(',').some((tag) => ['*', etag].includes(tag.trim().replace(/^W\//, '')));
}

/**
 * The bytes in memory of their own. Node allocates small buffers as slices of a pool of several kilobytes, and one slice
 * would hold the whole pool in memory.
 */
export function withOwnMemory(bytes: Buffer): Buffer {
  if (bytes.buffer.byteLength === bytes.length) return bytes;
  const own = Buffer.allocUnsafeSlow(bytes.length);
  own.set(bytes);
  return own;
}
