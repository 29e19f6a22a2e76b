/** Responses that are large and always the same: made when somebody asks, and stored as they are and compressed. */

import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import Negotiator from 'negotiator';
import { type HttpResponse, revalidated } from '../http/response.ts';
import type { PageHandler } from './page.ts';

/** The first is chosen where the client has no preference. */
const encodings = ['gzip', 'identity'];

/**
 * @param vary the request headers that the response depends on.
 * @param others headers that it has beside those, or in place of them.
 */
export function staticResponse(
  make: () => Promise<HttpResponse>,
  vary = 'Accept-Encoding',
  others: Readonly<Record<string, string>> = {},
): PageHandler {
  const forms = new Map<'gzip' | 'identity', Promise<HttpResponse>>();
  return ({ request }) => {
    const encoding = new Negotiator(request).encoding(encodings) === 'gzip' ? 'gzip' : 'identity';
    const known = forms.get(encoding);
    if (known) return known;
    const form = make()
      .then((response) => (encoding === 'gzip' ? compress(response) : response))
      .then((response) => revalidated(response, vary, others));
    forms.set(encoding, form);
    // The next request tries again.
    form.catch(() => forms.delete(encoding));
    return form;
  };
}

async function compress({ body, headers, ...response }: HttpResponse): Promise<HttpResponse> {
  const smaller = await promisify(gzip)(body);
  return {
    ...response,
    body: smaller,
    headers: { ...headers, 'Content-Encoding': 'gzip', 'Content-Length': smaller.length },
  };
}
