/**
 * Compresses the responses of both APIs, for clients that accept a content coding (RFC 9110, section 8.4.1). Streams are not
 * compressed. It promises that each form of a response has a tag of its own, and that a client never gets a form that it does
 * not accept where there is one that it does. A proxy in front can do the same (`COMPRESSION=off`).
 */

import { promisify } from 'node:util';
import { gzip, gzipSync } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import Negotiator from 'negotiator';
import type { Exchange } from './exchange.ts';
import { type HttpResponse, matches, type Validator } from './response.ts';

/** The forms of a response that were asked for. */
export interface Forms {
  plain?: HttpResponse;
  /** A promise while it is being compressed. */
  gzip?: HttpResponse | Promise<HttpResponse> | undefined;
}

/** The smallest body that is compressed, in bytes. A smaller one fits into a single packet anyway. */
const smallest = 1024;

/** The largest body, in bytes, that is compressed in this thread. For smaller ones handing them to another thread takes longer than compressing. */
const largestAtOnce = 64 * 1024;

/** The request header that the form depends on. */
const header = 'Accept-Encoding';

/** The response in the form that the client prefers. It is not made if the client already has it (`If-None-Match`). */
export function formFor(exchange: Exchange, response: HttpResponse): HttpResponse | Promise<HttpResponse> {
  // A response that is sent more than once stores its forms.
  const forms: Forms = response.forms ?? {};
  if (!forms.plain && !mayCompress(exchange, response)) return response;
  forms.plain ??= varied(response);
  const { plain } = forms;
  const accepted = acceptedCodings(exchange);
  const isSmall = plain.body.length < smallest && (accepted.length === 0 || accepted.includes('identity'));
  if (isSmall || accepted[0] !== 'gzip') return plain;
  if (forms.gzip) return forms.gzip;
  const condition = exchange.request.headers['if-none-match'];
  const validator = plain.validator && validatorOfGzip(plain.validator);
  return condition !== undefined && validator && matches(condition, validator.etag)
    ? { ...plain, validator }
    : compressed(plain, forms);
}

/** The accepted codings for the latest values of the header. Browsers and libraries send the same few values. */
const known = new LRUCache<string, readonly string[]>({ max: 100 });

/** A client without the header accepts every coding by the specification, but may be unable to decode any. */
const identityOnly = ['identity'];

/**
 * Those of `gzip` and `identity` that the client accepts, the preferred one first. `Cache-Control: no-transform` asks for the
 * uncompressed form; a page in a browser cannot set `Accept-Encoding`.
 */
function acceptedCodings({ request: { headers } }: Exchange): readonly string[] {
  const accept = headers['accept-encoding'];
  if (accept === undefined || forbidsTransform(headers['cache-control'])) return identityOnly;
  const found = known.get(accept) ?? readAccepted(accept);
  known.set(accept, found);
  return found;
}

/** Since version 1.0 Negotiator has the option `preferred`, the server's order among equals. Its type definitions lack it. */
interface PreferringNegotiator {
  encodings(offered: readonly string[], options: { preferred: readonly string[] }): string[];
}

/** What a value of the header means (RFC 9110, section 12.5.3). */
function readAccepted(accept: string): string[] {
  const offered = ['gzip', 'identity'];
  const negotiator: PreferringNegotiator = new Negotiator({ headers: { 'accept-encoding': accept } });
  return negotiator.encodings(offered, { preferred: offered });
}

/** Whether `no-transform` is among the directives (RFC 9111, sections 5.2.1.6 and 5.2.2.6). */
function forbidsTransform(cacheControl: string | undefined): boolean {
  return cacheControl !== undefined && /(^|[\s,])no-transform\b/i.test(cacheControl);
}

/** Whether the response is JSON of the gateway's own. Pages are compressed elsewhere, and forwarded responses stay as the upstream sent them. */
function mayCompress({ endpoint }: Exchange, { headers, isForwarded }: HttpResponse): boolean {
  if (endpoint === 'page' || isForwarded) return false;
  const type = String(headerOf(headers, 'Content-Type') ?? '');
  const cacheControl = String(headerOf(headers, 'Cache-Control') ?? '');
  return (
    /^application\/(json|graphql-response\+json)\b/i.test(type) &&
    headerOf(headers, 'Content-Encoding') === undefined &&
    !forbidsTransform(cacheControl)
  );
}

/** The level above which more time saves little. All responses use the same, since a tag stands for exact bytes. */
const options = { level: 3 };
const gzipLater = promisify<Buffer, typeof options, Buffer>(gzip);

/** Compresses the response, in another thread where that would hold up other requests. */
function compressed(plain: HttpResponse, forms: Forms): HttpResponse | Promise<HttpResponse> {
  const finish = (body: Buffer): HttpResponse => {
    const form = encoded(plain, withOwnMemory(body));
    forms.gzip = form;
    return form;
  };
  if (plain.body.length <= largestAtOnce) return finish(gzipSync(plain.body, options));
  const making = gzipLater(plain.body, options).then(finish);
  forms.gzip = making;
  // After a failure the next request tries again.
  making.catch(() => {
    forms.gzip = undefined;
  });
  return making;
}

function encoded(plain: HttpResponse, body: Buffer): HttpResponse {
  const headers = { ...plain.headers, 'Content-Encoding': 'gzip', 'Content-Length': body.length };
  if (!plain.validator) return { ...plain, headers, body };
  const validator = validatorOfGzip(plain.validator);
  return { ...plain, headers: { ...headers, ETag: validator.etag }, body, validator };
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

/**
 * A strong tag stands for exact bytes, so each form has its own (RFC 9110, section 8.8.3.3). It is made from that of the
 * uncompressed form: both change with the text and only with it.
 */
function validatorOfGzip(validator: Validator): Validator {
  const etag = `${validator.etag.slice(0, -1)}-gz"`;
  return { etag, headers: { ...validator.headers, ETag: etag } };
}

/** The response with `Vary: Accept-Encoding`, which the uncompressed form needs as well. */
function varied({ validator, ...response }: HttpResponse): HttpResponse {
  const headers = withVary(response.headers);
  return {
    ...response,
    headers,
    ...(validator && { validator: { ...validator, headers: withVary(validator.headers) } }),
  };
}

function withVary<Value extends string | number>({ vary, ...others }: Readonly<Record<string, Value>>) {
  const given = others.Vary ?? vary;
  return { ...others, Vary: given === undefined ? header : `${given}, ${header}` };
}

/** A header by its name. Responses made by libraries have header names in lower case. */
function headerOf<Value>(headers: Readonly<Record<string, Value>>, name: string): Value | undefined {
  return headers[name] ?? headers[name.toLowerCase()];
}
