/**
 * Compresses the responses of both APIs, for clients that accept a content coding (RFC 9110, section 8.4.1). Streams are not
 * compressed. It promises that each form of a response has a tag of its own, and that a client never gets a form that it does
 * not accept where there is one that it does. A proxy in front can do the same (`COMPRESSION=off`).
 */

import { promisify } from 'node:util';
import { type BrotliOptions, brotliCompress, brotliCompressSync, constants, gzip, gzipSync } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import Negotiator from 'negotiator';
import type { Exchange } from './exchange.ts';
import { type HttpResponse, matches, type Validator } from './response.ts';

/** A coding that compresses a body. */
export type Coding = 'br' | 'gzip';

/** How a body may be sent. `identity` means uncompressed. */
export type Form = Coding | 'identity';

/** The forms of a response: finished ones, and promises of those being compressed. `identity` is the uncompressed form. */
export type Forms = Map<Form, HttpResponse | Promise<HttpResponse>>;

/** The codings, in the order of preference for a client that accepts several equally. */
export const codings: readonly Coding[] = ['br', 'gzip'];

/** The smallest body that is compressed, in bytes. A smaller one fits into a single packet anyway. */
const smallest = 1024;

/** The largest body, in bytes, that is compressed in this thread. For smaller ones handing them to another thread takes longer than compressing. */
const largestAtOnce = 64 * 1024;

/** The request header that the form depends on. */
const header = 'Accept-Encoding';

/** The response in the form that the client prefers. It is not made if the client already has it (`If-None-Match`). */
export function formFor(exchange: Exchange, response: HttpResponse): HttpResponse | Promise<HttpResponse> {
  // A response that is sent more than once stores its forms.
  const forms: Forms = response.forms ?? new Map();
  let plain = forms.get('identity');
  if (!plain) {
    if (!mayCompress(exchange, response)) return response;
    plain = varied(response);
    forms.set('identity', plain);
  }
  // For the types only: the uncompressed form is never a promise.
  if (plain instanceof Promise) return plain;
  const accepted = acceptedForms(exchange);
  const isSmall = plain.body.length < smallest && (accepted.length === 0 || accepted.includes('identity'));
  const best = isSmall ? 'identity' : (accepted[0] ?? 'identity');
  if (best === 'identity') return plain;
  const made = forms.get(best);
  if (made) return made;
  const condition = exchange.request.headers['if-none-match'];
  const validator = plain.validator && validatorIn(plain.validator, best);
  return condition !== undefined && validator && matches(condition, validator.etag)
    ? { ...plain, validator }
    : compressed(plain, best, forms);
}

/** The accepted forms for the latest values of the header. Browsers and libraries send the same few values. */
const known = new LRUCache<string, readonly Form[]>({ max: 100 });

/** A client without the header accepts every coding by the specification, but may be unable to decode any. */
const identityOnly: readonly Form[] = ['identity'];

/**
 * The forms that the client accepts, the preferred one first; none if it accepts nothing that exists. `Cache-Control: no-transform`
 * asks for the uncompressed form; a page in a browser cannot set `Accept-Encoding`.
 */
function acceptedForms({ request: { headers } }: Exchange): readonly Form[] {
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
function readAccepted(accept: string): Form[] {
  const names = accept.toLowerCase().split(/[\s,;]+/);
  // `*` does not say which codings the client can decode. Every client can decode gzip.
  const preferred: Coding[] = names.includes('br') ? ['br', 'gzip'] : ['gzip', 'br'];
  const offered: Form[] = [...preferred, 'identity'];
  const negotiator: PreferringNegotiator = new Negotiator({ headers: { 'accept-encoding': accept } });
  const chosen = negotiator.encodings(offered, { preferred: offered });
  return chosen.flatMap((name) => offered.filter((form) => form === name));
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
const brotliOptions: BrotliOptions = {
  params: {
    [constants.BROTLI_PARAM_QUALITY]: 4,
    [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
  },
};
const gzipOptions = { level: 3 };
const brotliLater = promisify<Buffer, BrotliOptions, Buffer>(brotliCompress);
const gzipLater = promisify<Buffer, typeof gzipOptions, Buffer>(gzip);

const compressors = {
  br: {
    now: (body: Buffer) => brotliCompressSync(body, brotliOptions),
    later: (body: Buffer) => brotliLater(body, brotliOptions),
  },
  gzip: {
    now: (body: Buffer) => gzipSync(body, gzipOptions),
    later: (body: Buffer) => gzipLater(body, gzipOptions),
  },
};

/** Compresses the response, in another thread where that would hold up other requests. */
function compressed(plain: HttpResponse, coding: Coding, forms: Forms): HttpResponse | Promise<HttpResponse> {
  const finish = (body: Buffer): HttpResponse => {
    const form = encoded(plain, coding, withOwnMemory(body));
    forms.set(coding, form);
    return form;
  };
  if (plain.body.length <= largestAtOnce) return finish(compressors[coding].now(plain.body));
  const making = compressors[coding].later(plain.body).then(finish);
  forms.set(coding, making);
  // After a failure the next request tries again.
  making.catch(() => forms.delete(coding));
  return making;
}

function encoded(plain: HttpResponse, coding: Coding, body: Buffer): HttpResponse {
  const headers = { ...plain.headers, 'Content-Encoding': coding, 'Content-Length': body.length };
  if (!plain.validator) return { ...plain, headers, body };
  const validator = validatorIn(plain.validator, coding);
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

/** The end of each form's tag. A strong tag stands for exact bytes, so each form has its own (RFC 9110, section 8.8.3.3). */
const etagSuffixes: Readonly<Record<Coding, string>> = { gzip: '-gz', br: '-br' };

/** The tag of a form is made from that of the uncompressed form: both change with the text and only with it. */
function validatorIn(validator: Validator, form: Coding): Validator {
  const etag = `${validator.etag.slice(0, -1)}${etagSuffixes[form]}"`;
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
