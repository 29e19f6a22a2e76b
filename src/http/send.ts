/**
 * Compresses and sends responses, whole ones and streams. Compression (RFC 9110, section 8.4.1) is for clients that accept it. Each form
 * of a response has a tag of its own. Streams are not compressed. A proxy in front can compress instead (`COMPRESSION=off`).
 */

import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { gzip, gzipSync } from 'node:zlib';
import type { Exchange } from './exchange.ts';
import {
  type Forms,
  type HttpResponse,
  matches,
  type StreamedResponse,
  type Validator,
  withOwnMemory,
} from './response.ts';

/** The largest body, in bytes, that is faster to copy than to write separately. */
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

/** Alternating names and values, the form of headers that Node handles fastest. This loop is several times as fast as `flat`. */
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

/**
 * Sends the stream piece by piece, no faster than the client reads it, until it ends or the client leaves. If a client stops
 * reading, its connection is closed (`connections.ts`).
 */
export async function sendStream(
  exchange: Exchange,
  { status, headers: own, stream, signal, ended }: StreamedResponse,
): Promise<void> {
  const { request, response } = exchange;
  const { socket } = request;
  const leave = () => socket.destroy();
  // A client that ends its side while it reads a stream has left.
  if (socket.readableEnded) leave();
  socket.once('end', leave);
  const isSentBefore = response.headersSent;
  // A proxy such as nginx would hold a stream back until its buffer is full.
  if (!isSentBefore) response.writeHead(status, headersOf(exchange, { ...own, 'X-Accel-Buffering': 'no' }));
  try {
    // The response to a HEAD has no body (RFC 9110, section 9.3.2).
    if (!isSentBefore && request.method !== 'HEAD')
      await pipeline(Readable.fromWeb(stream), response, { ...(signal && { signal }) });
    // Not awaited: it may never settle while a read is pending.
    else void stream.cancel().catch(() => {});
    if (!isSentBefore) response.end();
  } catch {
    // The response is destroyed: the stream has failed, or the client has left.
  } finally {
    socket.off('end', leave);
    ended();
  }
}

/** The smallest body that is compressed, in bytes. A smaller one fits into a single packet anyway. */
const smallestCompressed = 1024;

/** The largest body, in bytes, that is compressed in this thread: handing it to another thread would take longer. */
const largestGzippedHere = 64 * 1024;

/** The request header that the form depends on. */
const codingHeader = 'Accept-Encoding';

/** The response in the form for the client. It is not made if the client already has it (`If-None-Match`). */
export function formFor(exchange: Exchange, response: HttpResponse): HttpResponse | Promise<HttpResponse> {
  // A response that is sent more than once stores its forms.
  const forms: Forms = response.forms ?? {};
  if (!forms.plain && !mayCompress(exchange, response)) return response;
  forms.plain ??= varied(response);
  const { plain } = forms;
  if (plain.body.length < smallestCompressed || !acceptsGzip(exchange)) return plain;
  if (forms.gzip) return forms.gzip;
  const condition = exchange.request.headers['if-none-match'];
  const validator = plain.validator && validatorOfGzip(plain.validator);
  return condition !== undefined && validator && matches(condition, validator.etag)
    ? { ...plain, validator }
    : compressed(plain, forms);
}

/**
 * Whether the client accepts gzip (RFC 9110, section 12.5.3). `Cache-Control: no-transform` asks for the uncompressed form (RFC 9111,
 * section 5.2.1.6): a page in a browser cannot set `Accept-Encoding`.
 */
const acceptsGzip = ({ request: { headers } }: Exchange): boolean =>
  /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i.test(headers['accept-encoding'] ?? '') &&
  !/(^|[\s,])no-transform\b/i.test(headers['cache-control'] ?? '');

/** Whether the response is JSON of this gateway. Static pages have `forms`, and forwarded responses stay as they came. */
function mayCompress({ endpoint }: Exchange, { headers, isForwarded }: HttpResponse): boolean {
  if (endpoint === 'page' || isForwarded) return false;
  return /^application\/(json|graphql-response\+json)\b/.test(String(headers['Content-Type']));
}

/** A higher level takes more time and saves little. All responses use the same level, since a tag identifies exact bytes. */
const gzipOptions = { level: 3 };
const gzipLater = promisify<Buffer, typeof gzipOptions, Buffer>(gzip);

/** Compresses the response, in another thread if it would delay other requests. */
function compressed(plain: HttpResponse, forms: Forms): HttpResponse | Promise<HttpResponse> {
  const finish = (body: Buffer): HttpResponse => {
    const form = encoded(plain, withOwnMemory(body));
    forms.gzip = form;
    return form;
  };
  if (plain.body.length <= largestGzippedHere) return finish(gzipSync(plain.body, gzipOptions));
  const making = gzipLater(plain.body, gzipOptions).then(finish);
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
 * A strong tag identifies exact bytes, so each form has its own (RFC 9110, section 8.8.3.3). It is made from that of the
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

function withVary<Value extends string | number>(headers: Readonly<Record<string, Value>>) {
  const { Vary: given } = headers;
  return { ...headers, Vary: given === undefined ? codingHeader : `${given}, ${codingHeader}` };
}
