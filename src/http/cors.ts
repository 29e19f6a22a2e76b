/** Cross-origin requests (the Fetch standard, CORS protocol): allowed to the pages of the origins that are named. */

import corsHeaders from 'cors';
import { errorResponse } from './errorResponse.ts';
import type { Exchange } from './exchange.ts';
import type { HttpResponse } from './response.ts';

/**
 * Says in the headers of a response whose pages may read it, for either API. Tokens travel in a header that only
 * a page which has one can set, so there are no credentials to allow.
 * @returns the response to a preflight, undefined for any other request.
 */
export type Cors = (exchange: Exchange) => HttpResponse | undefined;

/** How many refused origins are told of: a stranger can make up any number. */
const maxTold = 100;

/** @param onRefused told of each origin whose pages are refused, once, with the setting that would allow them. */
export function createCors(
  origins: readonly string[] | undefined,
  onRefused: (message: string) => void,
): Cors {
  const told = new Set<string>();
  const setHeaders = origins && createHeaders(origins);

  /** Which origins are named is for the log: anybody may send a preflight. */
  function refuse(origin: string): string {
    const what = `${JSON.stringify(origin)} is not an origin whose pages may use this gateway`;
    if (!told.has(origin) && told.size < maxTold) {
      told.add(origin);
      onRefused(what + hintFor(origin, origins));
    }
    return what + hintFor(origin);
  }

  return ({ request, response, endpoint }) => {
    const { origin, host } = request.headers;
    const isPreflight =
      request.method === 'OPTIONS' && request.headers['access-control-request-method'] !== undefined;
    // Without an origin it is no page that asks. The gateway's own pages need nobody's leave.
    const isNamed = origin !== undefined && origins?.includes(origin) === true;
    if (origin === undefined || (!isNamed && hostOf(origin) === host)) {
      if (setHeaders) response.setHeader('Vary', 'Origin');
      return undefined;
    }
    setHeaders?.(request, response, () => {});
    if (!isNamed) {
      const message = refuse(origin);
      return isPreflight ? errorResponse(endpoint, { code: 'FORBIDDEN', message }) : undefined;
    }
    return isPreflight ? { status: 204, headers: {}, body: Buffer.alloc(0) } : undefined;
  };
}

/** The setting that would allow the origin, beside those that are named. Only pages that came over HTTP have a name. */
function hintFor(origin: string, origins: readonly string[] = []): string {
  if (!/^https?:/.test(origin) || hostOf(origin) === undefined) return '';
  return `: CORS_ORIGINS=${[...origins, origin].join()} would allow them`;
}

const hostOf = (origin: string) => (URL.canParse(origin) ? new URL(origin).host : undefined);

function createHeaders(origins: readonly string[]) {
  return corsHeaders({
    origin: [...origins],
    preflightContinue: true,
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
}
