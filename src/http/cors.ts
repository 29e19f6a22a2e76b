/** Cross-origin requests (the Fetch standard, CORS protocol): allowed to the pages of the origins that are named. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import corsHeaders from 'cors';

/**
 * Says in the headers of a response whose pages may read it, for either API. Tokens travel in a header that only
 * a page which has one can set, so there are no credentials to allow.
 * @returns whether the request was a preflight, and has its response.
 */
export type Cors = (request: IncomingMessage, response: ServerResponse) => boolean;

export function createCors(origins: readonly string[] | undefined): Cors {
  if (!origins) return () => false;
  const handle = corsHeaders({
    origin: [...origins],
    methods: ['GET', 'HEAD', 'POST'],
    allowedHeaders: [
      'Authorization',
      'Content-Type',
      'If-None-Match',
      'X-Request-Id',
      'traceparent',
      'tracestate',
    ],
    exposedHeaders: [
      'ETag',
      'Retry-After',
      'RateLimit',
      'RateLimit-Policy',
      'WWW-Authenticate',
      'X-Request-Id',
      'Deprecation',
      'Sunset',
      'Link',
    ],
    // Two hours are the most that browsers believe.
    maxAge: 7200,
  });
  return (request, response) => {
    // Without an origin it is no page that asks, and OPTIONS no preflight.
    if (request.headers.origin === undefined) {
      response.setHeader('Vary', 'Origin');
      return false;
    }
    handle(request, response, () => {});
    return response.writableEnded;
  };
}
