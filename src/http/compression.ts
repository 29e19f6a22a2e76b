/** Compresses the responses of both APIs, whole ones and streams, for clients that accept a content coding. */

import { acceptanceOf, type Coding, compress, createPieceEncoder, type Form } from './contentCoding.ts';
import type { Exchange } from './exchange.ts';
import { type HttpResponse, matches, type StreamedResponse, type Validator } from './response.ts';

/** The forms of a response by their codings: finished ones, and promises of those being compressed. `identity` is the uncompressed form. */
export interface Forms {
  get(form: Form): HttpResponse | Promise<HttpResponse> | undefined;
  set(form: Form, response: HttpResponse | Promise<HttpResponse>): void;
  delete(form: Form): void;
}

/** The smallest body that is compressed, in bytes. A smaller one fits into a single packet anyway. */
const smallest = 1024;

/** The request header that the form depends on. */
const header = 'Accept-Encoding';

/**
 * The response in the form that the client prefers. If the client already has an acceptable form of it (`If-None-Match`),
 * the result is that form, so that the response becomes a 304.
 */
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
  const { forms: accepted, acceptsIdentity } = acceptanceFor(exchange);
  const best = plain.body.length < smallest && acceptsIdentity ? 'identity' : (accepted[0] ?? 'identity');
  const condition = exchange.request.headers['if-none-match'];
  const { validator } = plain;
  if (condition !== undefined && validator) {
    // Only accepted forms. A cache may send the tags of several stored forms, and serves the one that the 304 names.
    for (const form of accepted) {
      if (!matches(condition, tagOf(validator, form))) continue;
      const made = forms.get(form);
      return made && !(made instanceof Promise)
        ? made
        : { ...plain, validator: validatorIn(validator, form) };
    }
  }
  return best === 'identity' ? plain : (forms.get(best) ?? compressed(plain, best, forms));
}

/** The stream, compressed piece by piece if the client prefers gzip to no coding. Other codings are not used for streams. */
export function streamFor(exchange: Exchange, response: StreamedResponse): StreamedResponse {
  const { forms } = acceptanceFor(exchange);
  const headers = withVary(response.headers);
  const gzip = forms.indexOf('gzip');
  const plain = forms.indexOf('identity');
  if (gzip === -1 || (plain !== -1 && plain < gzip)) return { ...response, headers };
  return {
    ...response,
    headers: { ...headers, 'Content-Encoding': 'gzip' },
    encoder: createPieceEncoder(),
  };
}

/** What the client accepts. `Cache-Control: no-transform` asks for the uncompressed form; a page in a browser cannot set `Accept-Encoding`. */
function acceptanceFor({ request: { headers } }: Exchange) {
  return acceptanceOf(forbidsTransform(headers['cache-control']) ? undefined : headers['accept-encoding']);
}

/** Whether `no-transform` is among the directives (RFC 9111, sections 5.2.1.6 and 5.2.2.6). */
function forbidsTransform(cacheControl: string | undefined): boolean {
  return cacheControl !== undefined && /(^|[\s,])no-transform\b/i.test(cacheControl);
}

/** Whether the response is JSON of the gateway's own. Pages are compressed elsewhere, and relayed responses stay as the upstream sent them. */
function mayCompress({ endpoint }: Exchange, { headers, isRelayed }: HttpResponse): boolean {
  if (endpoint === 'page' || isRelayed) return false;
  const type = String(headerOf(headers, 'Content-Type') ?? '');
  const cacheControl = String(headerOf(headers, 'Cache-Control') ?? '');
  return (
    /^application\/(json|graphql-response\+json)\b/i.test(type) &&
    headerOf(headers, 'Content-Encoding') === undefined &&
    !forbidsTransform(cacheControl)
  );
}

function compressed(plain: HttpResponse, coding: Coding, forms: Forms): HttpResponse | Promise<HttpResponse> {
  const finish = (body: Buffer): HttpResponse => {
    const form = encoded(plain, coding, body);
    forms.set(coding, form);
    return form;
  };
  const body = compress(plain.body, coding);
  if (Buffer.isBuffer(body)) return finish(body);
  const making = body.then(finish, (error: unknown) => {
    forms.delete(coding);
    throw error;
  });
  forms.set(coding, making);
  return making;
}

function encoded(plain: HttpResponse, coding: Coding, body: Buffer): HttpResponse {
  const { headers, validator } = plain;
  const own = { ...headers, 'Content-Encoding': coding, 'Content-Length': body.length };
  if (!validator) return { ...plain, headers: own, body };
  const { etag } = validatorIn(validator, coding);
  return { ...plain, headers: { ...own, ETag: etag }, body, validator: validatorIn(validator, coding) };
}

/** The end of each form's tag. A strong tag stands for exact bytes, so each form has its own (RFC 9110, section 8.8.3.3). */
const etagSuffixes: Readonly<Record<Form, string>> = { identity: '', gzip: '-gz', br: '-br', zstd: '-zstd' };

/** The tag of a form, made from the tag of the uncompressed form: both change with the text and only with it. */
function tagOf({ etag }: Validator, form: Form): string {
  return `${etag.slice(0, -1)}${etagSuffixes[form]}"`;
}

function validatorIn(validator: Validator, form: Form): Validator {
  const etag = tagOf(validator, form);
  return { etag, headers: { ...validator.headers, ETag: etag } };
}

/** The response with `Vary: Accept-Encoding`, which the uncompressed form needs as well. */
function varied(response: HttpResponse): HttpResponse {
  const { headers, validator } = response;
  return {
    ...response,
    headers: withVary(headers),
    ...(validator && { validator: { ...validator, headers: withVary(validator.headers) } }),
  };
}

function withVary<Value extends string | number>(
  headers: Readonly<Record<string, Value>>,
): Readonly<Record<string, Value | string>> {
  const { vary, ...others } = headers;
  const given = others.Vary ?? vary;
  return { ...others, Vary: given === undefined ? header : `${given}, ${header}` };
}

/** A header by its name. Responses made by libraries have header names in lower case. */
function headerOf<Value>(headers: Readonly<Record<string, Value>>, name: string): Value | undefined {
  return headers[name] ?? headers[name.toLowerCase()];
}
