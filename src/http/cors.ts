/** Cross-origin requests (the Fetch standard, CORS protocol): allowed to the pages of the origins that are named. */

import corsHeaders from 'cors';
import { errorResponse } from './errorResponse.ts';
import type { Exchange } from './exchange.ts';
import type { HttpResponse } from './response.ts';

export interface Cors {
  /**
   * Says in the headers of a response whose pages may read it, for either API. Tokens travel in a header that only
   * a page which has one can set, so there are no credentials to allow.
   * @returns the response to a preflight, undefined for any other request.
   */
  respond(exchange: Exchange): HttpResponse | undefined;
  /**
   * The response to a page that wants to open a WebSocket and is none of those that may use the gateway: no browser asks
   * whether it may. Undefined for any other client.
   */
  rejectSocket(exchange: Exchange): HttpResponse | undefined;
  /**
   * The response to any page that is none of those that are named, the gateway's own among them: who has a name lead to this
   * machine for a moment could serve a page that seems to be one (DNS rebinding). Undefined for any other client.
   */
  rejectForeignPage(exchange: Exchange): HttpResponse | undefined;
}

/** The methods of the two APIs, and those that an upstream may have beside them. */
export const usualMethods = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'];
export const relayedMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** How many refused origins are told of: a stranger can make up any number. */
const maxTold = 100;

/**
 * @param onRefused told of each origin whose pages are refused, once, with the setting that would allow them.
 * @param methods what pages may use.
 */
export function createCors(
  origins: readonly string[] | undefined,
  onRefused: (message: string) => void,
  methods: readonly string[] = usualMethods,
): Cors {
  const rejectionMessage = createRejectionMessages(origins, onRefused);
  const setHeaders = origins && createHeaders(origins, methods);

  /** The origin of a page that is none of those that may use the gateway. The gateway's own pages need nobody's leave. */
  function foreignOrigin({ request: { headers } }: Exchange): string | undefined {
    const { origin, host } = headers;
    return origin === undefined || origins?.includes(origin) || hostOf(origin) === host ? undefined : origin;
  }

  function forbidden(
    { endpoint }: Exchange,
    origin: string | undefined,
    headers?: Record<string, string>,
  ): HttpResponse | undefined {
    if (origin === undefined) return undefined;
    return errorResponse(endpoint, { code: 'FORBIDDEN', message: rejectionMessage(origin) }, headers);
  }

  return {
    respond(exchange) {
      const { request, endpoint } = exchange;
      const { origin, host } = request.headers;
      const isPreflight =
        request.method === 'OPTIONS' && request.headers['access-control-request-method'] !== undefined;
      // Without an origin it is no page that asks.
      const isNamed = origin !== undefined && origins?.includes(origin) === true;
      if (origin === undefined || (!isNamed && hostOf(origin) === host)) {
        if (setHeaders) exchange.headers.Vary = 'Origin';
        return undefined;
      }
      setHeaders?.(exchange);
      if (!isNamed) {
        const message = rejectionMessage(origin);
        return isPreflight ? errorResponse(endpoint, { code: 'FORBIDDEN', message }) : undefined;
      }
      return isPreflight ? { status: 204, headers: {}, body: Buffer.alloc(0) } : undefined;
    },

    rejectSocket: (exchange) => forbidden(exchange, foreignOrigin(exchange), { Connection: 'close' }),

    rejectForeignPage(exchange) {
      const { origin } = exchange.request.headers;
      return forbidden(exchange, origin !== undefined && origins?.includes(origin) ? undefined : origin);
    },
  };
}

/** Makes what is said of an origin whose pages are refused, and tells of it once. */
function createRejectionMessages(
  origins: readonly string[] | undefined,
  onRefused: (message: string) => void,
) {
  const told = new Set<string>();

  /** Which origins are named is for the log: anybody may send a preflight. */
  return (origin: string): string => {
    const what = `${JSON.stringify(origin)} is not an origin whose pages may use this gateway`;
    if (!told.has(origin) && told.size < maxTold) {
      told.add(origin);
      onRefused(what + hintFor(origin, origins));
    }
    return what + hintFor(origin);
  };
}

/** Where a page is that was a file and is served. */
const served = 'http://localhost:5173';

/**
 * The setting that would allow the origin, beside those that are named. Only pages that came over HTTP have a name: a
 * browser says `null` of a file.
 */
function hintFor(origin: string, origins: readonly string[] = []): string {
  if (origin === 'null')
    return `: it is that of a file. Serve it, such as by python3 -m http.server 5173, set CORS_ORIGINS=${[...origins, served].join()}, and open ${served}`;
  if (!/^https?:/.test(origin) || hostOf(origin) === undefined) return '';
  return `: CORS_ORIGINS=${[...origins, origin].join()} would allow them`;
}

const hostOf = (origin: string) => (URL.canParse(origin) ? new URL(origin).host : undefined);

/**
 * Pages of these origins may send any header: libraries send some of their own, such as those of Apollo Client and of
 * tracing. There are no credentials that a header could add to, and what the gateway does not know it does not read.
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
    ],
    // Two hours are the most that browsers believe.
    maxAge: 7200,
  });
  return ({ request, headers }: Exchange): void => {
    const response = {
      getHeader: (name: string) => headers[name],
      setHeader(name: string, value: string) {
        headers[name] = value;
      },
      end() {},
    };
    set(request, response, () => {});
  };
}
