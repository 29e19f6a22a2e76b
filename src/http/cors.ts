/** Cross-origin requests (CORS protocol of the Fetch standard): the pages of the origins in `CORS_ORIGINS` may make them. */

import { ServerResponse } from 'node:http';
import corsHeaders from 'cors';
import type { Config } from '../config/config.ts';
import { errorResponse } from './errorResponse.ts';
import type { Endpoint, Exchange } from './exchange.ts';
import type { HttpResponse } from './response.ts';

/** The methods of the two APIs, and the methods of requests that may be forwarded. */
export const usualMethods = ['GET', 'HEAD', 'POST'];
export const forwardedMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** The log names at most this many rejected origins: a client can invent any number of them. */
const maxTold = 100;

export type Cors = ReturnType<typeof createCors>;

/**
 * @param onRejected called once for each rejected origin, with a message that names the setting.
 * @param methods the methods that pages may use.
 */
export function createCors(
  { CORS_ORIGINS: origins, PUBLIC_URL }: Pick<Config, 'CORS_ORIGINS' | 'PUBLIC_URL'>,
  onRejected: (message: string) => void,
  methods: readonly string[],
) {
  const told = new Set<string>();
  const setHeaders = origins && createHeaders(origins, methods);
  const isNamed = (origin: string | undefined) => origin === undefined || origins?.includes(origin) === true;
  const own = PUBLIC_URL && new URL(PUBLIC_URL).origin;
  /** Whether the page is the gateway's own. A proxy may replace the host. */
  const isOwn = (origin = '', host = '') =>
    origin === own || (URL.canParse(origin) && new URL(origin).host === host);

  /** The error response to a page of this origin, which is logged once. */
  function reject(endpoint: Endpoint, origin: string, headers = {}): HttpResponse {
    const message = `${JSON.stringify(origin)} is not an origin whose pages may use this gateway: CORS_ORIGINS does not name it`;
    if (!told.has(origin) && told.size < maxTold) {
      told.add(origin);
      onRejected(message);
    }
    return errorResponse(endpoint, { code: 'FORBIDDEN', message }, headers);
  }

  return {
    /**
     * Sets the CORS headers of the response. They allow no credentials, such as cookies: a page sends its token in a
     * header.
     * @returns the response to a preflight, undefined for any other request.
     */
    respond(exchange: Exchange): HttpResponse | undefined {
      const { method, headers } = exchange.request;
      const { origin, host } = headers;
      // A request without an Origin does not come from a page of another origin.
      if (origin === undefined || (!isNamed(origin) && isOwn(origin, host))) {
        if (setHeaders) exchange.headers.Vary = 'Origin';
        return undefined;
      }
      setHeaders?.(exchange);
      const isPreflight = method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
      const rejection = isNamed(origin) ? undefined : reject(exchange.endpoint, origin);
      return isPreflight ? (rejection ?? { status: 204, headers: {}, body: Buffer.alloc(0) }) : undefined;
    },

    /**
     * The error response to a page whose origin is not named, undefined for any other client: for requests that browsers send without a
     * preflight.
     * @param trustsOwn whether the gateway's own pages may send it. By DNS rebinding another site could have their origin.
     */
    rejectPage({ endpoint, request: { headers } }: Exchange, trustsOwn: boolean): HttpResponse | undefined {
      const { origin = '', host } = headers;
      if (isNamed(headers.origin) || (trustsOwn && isOwn(origin, host))) return undefined;
      return reject(endpoint, origin, { Connection: 'close' });
    },
  };
}

/**
 * Pages of these origins may send any header: libraries such as Apollo Client, and tracing, add their own. That is safe: no
 * credentials are allowed, and the gateway ignores unknown headers.
 */
function createHeaders(origins: readonly string[], methods: readonly string[]) {
  const set = corsHeaders({
    origin: [...origins],
    preflightContinue: true,
    methods: [...methods],
    exposedHeaders: [
      'ETag',
      'Retry-After',
      'RateLimit',
      'RateLimit-Policy',
      'WWW-Authenticate',
      'X-Request-Id',
      'Dovetail-Position',
      'Deprecation',
      'Sunset',
      'Link',
      'Age',
      'Preference-Applied',
    ],
    // Browsers cache a preflight for two hours at most.
    maxAge: 7200,
  });
  return ({ request, headers }: Exchange): void => {
    // Not the response itself, whose headers are written all at once.
    const response = new ServerResponse(request);
    set(request, response, () => {});
    for (const [name, value] of Object.entries(response.getHeaders()))
      headers[name === 'vary' ? 'Vary' : name] = String(value);
  };
}
