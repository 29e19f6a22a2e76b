/** Compressed responses of both APIs, for the clients that take them so: whole ones and streams. */

import { acceptanceOf, type Coding, compress, createPieceEncoder, type Form } from './contentCoding.ts';
import type { Exchange } from './exchange.ts';
import { type HttpResponse, matches, type StreamedResponse, type Validator } from './response.ts';

/** The forms of a response: those that there are, and those that are being made. As it is, it stands under `identity`. */
export interface Forms {
  get(form: Form): HttpResponse | Promise<HttpResponse> | undefined;
  set(form: Form, response: HttpResponse | Promise<HttpResponse>): void;
  delete(form: Form): void;
}

/** The smallest body that is compressed, in bytes: what fits into one packet as it is takes no longer. */
const smallest = 1024;

/** The header that says which form is taken. */
const header = 'Accept-Encoding';

/**
 * The response in the form that its client takes best. A client that says which one it has gets the response whose tag
 * that is, so that it is told that it has it.
 */
export function formFor(exchange: Exchange, response: HttpResponse): HttpResponse | Promise<HttpResponse> {
  // A response that is sent more than once remembers its forms.
  const forms: Forms = response.forms ?? new Map();
  let plain = forms.get('identity');
  if (!plain) {
    if (!mayCompress(exchange, response)) return response;
    plain = varied(response);
    forms.set('identity', plain);
  }
  // Nothing is waited for to have it as it is.
  if (plain instanceof Promise) return plain;
  const { forms: taken, takesPlain } = acceptanceFor(exchange);
  const best = plain.body.length < smallest && takesPlain ? 'identity' : (taken[0] ?? 'identity');
  const condition = exchange.request.headers['if-none-match'];
  const { validator } = plain;
  if (condition !== undefined && validator) {
    // None that the client would not take: a cache asks for several of its own, and serves the one that a 304 names.
    for (const form of [best, ...taken]) {
      if (!matches(condition, tagOf(validator, form))) continue;
      const made = form === 'identity' ? plain : forms.get(form);
      return made && !(made instanceof Promise)
        ? made
        : { ...plain, validator: validatorIn(validator, form) };
    }
  }
  return best === 'identity' ? plain : (forms.get(best) ?? compressed(plain, best, forms));
}

/** The stream, compressed piece by piece for a client that would rather have it so. All that have it know gzip. */
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

/** What the client takes. Whoever wants nothing done to a response gets it as it is: a page has no other way to say so. */
function acceptanceFor({ request: { headers } }: Exchange) {
  return acceptanceOf(isUntouchable(headers['cache-control']) ? undefined : headers['accept-encoding']);
}

/** RFC 9111, sections 5.2.1.6 and 5.2.2.6. */
function isUntouchable(cacheControl: string | undefined): boolean {
  return cacheControl !== undefined && /(^|[\s,])no-transform\b/i.test(cacheControl);
}

/** A response of either API, of its own JSON: pages have ways of their own, and what is relayed is as the upstream has it. */
function mayCompress({ endpoint }: Exchange, { status, headers, isRelayed }: HttpResponse): boolean {
  if (endpoint === 'page' || isRelayed || status === 204) return false;
  const type = String(headerOf(headers, 'Content-Type') ?? '');
  const cacheControl = String(headerOf(headers, 'Cache-Control') ?? '');
  return (
    /^application\/(json|graphql-response\+json)\b/i.test(type) &&
    headerOf(headers, 'Content-Encoding') === undefined &&
    !isUntouchable(cacheControl)
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

/** What the tag of a form ends with. Strong tags are of bytes, and so each form has its own (RFC 9110, section 8.8.3.3). */
const etagSuffixes: Readonly<Record<Form, string>> = { identity: '', gzip: '-gz', br: '-br', zstd: '-zstd' };

/** The tag of a form, which that of the whole stands for: one as the other changes with the text. */
function tagOf({ etag }: Validator, form: Form): string {
  return form === 'identity' ? etag : `${etag.slice(0, -1)}${etagSuffixes[form]}"`;
}

function validatorIn(validator: Validator, form: Form): Validator {
  const etag = tagOf(validator, form);
  return { etag, headers: { ...validator.headers, ETag: etag } };
}

/** The response, said to depend on what its client takes: that holds also where it is sent as it is. */
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

/** Some responses are made by others, who write the names of headers in lower case. */
function headerOf<Value>(headers: Readonly<Record<string, Value>>, name: string): Value | undefined {
  return headers[name] ?? headers[name.toLowerCase()];
}
