/** Responses that are always the same. They are created with the first request, and stored with and without compression. */

import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import Negotiator from 'negotiator';
import { type HttpResponse, revalidated } from '../http/response.ts';
import type { PageHandler } from './page.ts';

/** The first is chosen if the client has no preference. */
const encodings = ['gzip', 'identity'];

/**
 * Creates a handler that always gives the same response.
 * @param vary the request headers that the response depends on.
 * @param others response headers to add or replace.
 */
export function staticResponse(
  create: () => Promise<HttpResponse>,
  vary = 'Accept-Encoding',
  others: Readonly<Record<string, string>> = {},
): PageHandler {
  const stored = new Map<'gzip' | 'identity', Promise<HttpResponse>>();
  return ({ request }) => {
    const encoding = new Negotiator(request).encoding(encodings) === 'gzip' ? 'gzip' : 'identity';
    const earlier = stored.get(encoding);
    if (earlier) return earlier;
    const pending = create()
      .then((response) => (encoding === 'gzip' ? compress(response) : response))
      .then((response) => revalidated(response, vary, others));
    stored.set(encoding, pending);
    // After a failure the next request tries again.
    pending.catch(() => stored.delete(encoding));
    return pending;
  };
}

async function compress({ body, headers, ...response }: HttpResponse): Promise<HttpResponse> {
  const compressed = await promisify(gzip)(body);
  return {
    ...response,
    body: compressed,
    headers: { ...headers, 'Content-Encoding': 'gzip', 'Content-Length': compressed.length },
  };
}
