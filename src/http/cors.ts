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

/** The headers that a page may send, beside those that every page may. */
const usualHeaders = [
  'Authorization',
  'Content-Type',
  'If-None-Match',
  'Cache-Control',
  'X-Request-Id',
  'Dovetail-Position',
  'X-GraphQL-Event-Stream-Token',
  'traceparent',
  'tracestate',
];

/** Those of clients of the Model Context Protocol. */
export const mcpHeaders = ['MCP-Protocol-Version', 'Mcp-Method', 'Mcp-Name'];

/** The methods of the two APIs, and those that an upstream may have beside them. */
export const usualMethods = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'];
export const relayedMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

export interface CorsOptions {
  /** What pages may use, if not the methods of the two APIs alone. */
  readonly methods?: readonly string[];
  /** What pages may send beside what every page may. */
  readonly headers?: readonly string[];
}

/** How many refused origins and headers are told of: a stranger can make up any number. */
const maxTold = 100;

/**
 * @param onRefused told of each origin whose pages are refused, once, with the setting that would allow them, and of each
 * header that no page may send.
 */
export function createCors(
  origins: readonly string[] | undefined,
  onRefused: (message: string) => void,
  { methods = usualMethods, headers = [] }: CorsOptions = {},
): Cors {
  const allowedHeaders = [...usualHeaders, ...headers];
  const { rejectionMessage, tellOfHeaders } = createTold(origins, onRefused, allowedHeaders);
  const setHeaders = origins && createHeaders(origins, methods, allowedHeaders);

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
      if (isPreflight) tellOfHeaders(request.headers['access-control-request-headers'] ?? '');
      return isPreflight ? { status: 204, headers: {}, body: Buffer.alloc(0) } : undefined;
    },

    rejectSocket: (exchange) => forbidden(exchange, foreignOrigin(exchange), { Connection: 'close' }),

    rejectForeignPage(exchange) {
      const { origin } = exchange.request.headers;
      return forbidden(exchange, origin !== undefined && origins?.includes(origin) ? undefined : origin);
    },
  };
}

/** Tells of what is refused, once each. */
function createTold(
  origins: readonly string[] | undefined,
  onRefused: (message: string) => void,
  allowedHeaders: readonly string[],
) {
  const told = new Set<string>();

  /** Which origins are named is for the log: anybody may send a preflight. */
  function rejectionMessage(origin: string): string {
    const what = `${JSON.stringify(origin)} is not an origin whose pages may use this gateway`;
    tellOnce(origin, what + hintFor(origin, origins));
    return what + hintFor(origin);
  }

  function tellOnce(refused: string, message: string): void {
    if (told.has(refused) || told.size >= maxTold) return;
    told.add(refused);
    onRefused(message);
  }

  /** A browser goes by the list that it is sent, and tells nobody but its console which header is not in it. */
  function tellOfHeaders(asked: string): void {
    for (const name of asked.split(',').map((each) => each.trim()))
      if (
        usualName.test(name) &&
        !allowedHeaders.some((allowed) => allowed.toLowerCase() === name.toLowerCase())
      )
        tellOnce(
          `header ${name}`,
          `${JSON.stringify(name)} is not a header that pages may send: they may send ${allowedHeaders.join(', ')}`,
        );
  }

  return { rejectionMessage, tellOfHeaders };
}

/** What a header is called: anything else no page could send. */
const usualName = /^[\w-]{1,64}$/;

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

function createHeaders(
  origins: readonly string[],
  methods: readonly string[],
  allowedHeaders: readonly string[],
) {
  const set = corsHeaders({
    origin: [...origins],
    preflightContinue: true,
    methods: [...methods],
    allowedHeaders: [...allowedHeaders],
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
