/** One request on its way through the gateway, and the headers of its response. */

import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { HttpResponse } from './response.ts';

/** The part of the gateway that handles a request. */
export type Endpoint = 'rest' | 'graphql' | 'page' | OwnEndpoint;

/** A path of an extension. */
export interface OwnEndpoint {
  /** Its name in the log and the metrics. */
  readonly name: string;
  /** The body of an error response, before it is written as JSON. */
  errorBody(message: string): object;
}

/** The name of an endpoint, for the log, metrics and traces. */
export const nameOfEndpoint = (endpoint: Endpoint): string =>
  typeof endpoint === 'string' ? endpoint : endpoint.name;

export const restPath = '/api/v1';

/** An operation that has no request of its own, and the way to respond to it early. */
export interface OperationMessage {
  /** The content of a body, parsed from JSON. It is never written as JSON again, since JSON has no `Infinity`. */
  readonly content: unknown;
  /** Responds at once, without waiting for the operation to end. */
  cutShort(response: HttpResponse): void;
}

export interface Exchange {
  /** Names the request in the log, and to the client as `X-Request-Id`. */
  readonly id: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The request's target in origin form. */
  readonly target: string;
  /** The target without its query. */
  readonly path: string;
  readonly endpoint: Endpoint;
  /**
   * The operation for the log and metrics: a route without its id, or the kind and the root field of a GraphQL operation.
   * There are few values, and none contains text that a client wrote.
   */
  operation: string | undefined;
  /** The code of the first error in a GraphQL response. */
  errorCode: string | undefined;
  /** Whether the response came from the cache; undefined for requests whose response is never cached. */
  cache: 'hit' | 'miss' | undefined;
  /** The transport that carries the results; undefined if the HTTP response does. */
  transport: 'websocket' | undefined;
  /** Set for an operation that has no request of its own. */
  readonly message: OperationMessage | undefined;
  /** Whether load shedding has admitted it, for its viewer. */
  hasBegun: boolean;
  /** The timer that ends a request without a response; undefined where no deadline has begun. */
  deadline: NodeJS.Timeout | undefined;
  /** The index among the exchanges under way, for the metrics. */
  underwayIndex: number;
  hasViewer: boolean;
  /** Whether a quota of its viewer counts it, as a subscription or a WebSocket. */
  isInQuota: boolean;
  hasExpiredToken: boolean;
  /** Whether the response was sent, or the client has left. */
  isOver: boolean;
  /** Headers that are added to those of the response, or replace them. Values of `Vary` are joined. */
  readonly headers: Record<string, string>;
  /** Logs an error that the client does not get to see. */
  report(error: unknown): void;
}

export interface Outcome {
  readonly exchange: Exchange;
  /** The HTTP status, or undefined for a client that left before there was one. */
  readonly status: number | undefined;
  /** From the arrival of the head to the last byte handed over, in milliseconds. */
  readonly duration: number;
}

export interface ExchangeListener {
  /** The endpoints of extensions, by their paths. */
  readonly endpoints?: ReadonlyMap<string, OwnEndpoint>;
  readonly began?: ((exchange: Exchange) => void) | undefined;
  /** Called with an error that the client does not get to see. */
  failed(exchange: Exchange, error: unknown): void;
  /** Called when the exchange is over, however it ended. */
  ended(outcome: Outcome): void;
}

/** The form of a request id that a client may choose. Any other text could forge a log line, or put a token into it. */
const usableId = /^(?!dvt_)[\w.-]{1,64}$/;

export const openExchange = (
  request: IncomingMessage,
  response: ServerResponse,
  listener: ExchangeListener,
) => createExchange(request, response, idOf(request), listener);

/** The headers by which proxies say that they have forwarded a request. */
export const forwardingHeaders = ['x-forwarded-for', 'forwarded', 'x-real-ip', 'via'];

/** A request with the connection and the host of another one. A header without a value is left out. */
export function requestWithin(
  outer: IncomingMessage,
  method: string,
  url: string,
  given: IncomingMessage['headers'],
): IncomingMessage {
  const all = Object.entries({ host: outer.headers.host, ...given });
  const present = all.filter(([, value]) => value !== undefined);
  const headers = Object.fromEntries(present);
  const own = { method, url, headers, rawHeaders: present.flat(), complete: true };
  return Object.create(outer, Object.getOwnPropertyDescriptors(own));
}

/** The id of the request: the one that its client has given it, if that is usable. */
function idOf({ headers }: IncomingMessage): string {
  const given = headers['x-request-id'];
  const isUsable = typeof given === 'string' && usableId.test(given);
  // A token of another service may look like anything.
  return isUsable && !headers.authorization?.includes(given) ? given : randomUUID();
}

export function createExchange(
  request: IncomingMessage,
  response: ServerResponse,
  id: string,
  listener: ExchangeListener,
  message?: OperationMessage,
): Exchange {
  const began = performance.now();
  const target = targetOf(request);
  const path = pathOf(target);
  const exchange: Exchange = {
    id,
    request,
    response,
    target,
    path,
    endpoint: endpointOf(path) ?? listener.endpoints?.get(path) ?? 'page',
    operation: undefined,
    errorCode: undefined,
    cache: undefined,
    transport: undefined,
    message,
    hasBegun: false,
    deadline: undefined,
    underwayIndex: -1,
    hasViewer: false,
    isInQuota: false,
    hasExpiredToken: false,
    isOver: false,
    headers: { 'X-Request-Id': id, 'X-Content-Type-Options': 'nosniff' },
    report: (error) => listener.failed(exchange, error),
  };
  response.on('close', () => {
    if (exchange.isOver) return;
    exchange.isOver = true;
    const status = response.headersSent ? response.statusCode : undefined;
    listener.ended({ exchange, status, duration: performance.now() - began });
  });
  listener.began?.(exchange);
  return exchange;
}

function endpointOf(path: string): 'rest' | 'graphql' | undefined {
  if (path === restPath || path.startsWith(`${restPath}/`)) return 'rest';
  return path === '/graphql' ? 'graphql' : undefined;
}

/** The target without its query. */
function pathOf(target: string): string {
  const end = target.indexOf('?');
  return end === -1 ? target : target.slice(0, end);
}

/** The target in origin form (RFC 9112, section 3.2). A client that talks to a proxy sends the absolute form. */
function targetOf({ url = '/' }: IncomingMessage): string {
  const target = url.replace(/^https?:\/\/[^/?]*/i, '');
  // An empty path means the root (RFC 9110, section 4.2.3).
  return target === '' || target.startsWith('?') ? `/${target}` : target;
}

export type Deadlines = ReturnType<typeof createDeadlines>;

/**
 * @param longest how long, in milliseconds, a request may take, without the time in which the client sends it.
 * @param onTimeout called with a request that takes longer, and has no response yet.
 */
export function createDeadlines(longest: number, onTimeout: (exchange: Exchange) => void) {
  function expire(exchange: Exchange): void {
    exchange.deadline = undefined;
    if (exchange.response.headersSent) return;
    // A client that sends too slowly has a timeout of its own.
    if (exchange.request.complete) onTimeout(exchange);
    else begin(exchange);
  }

  /** Has no effect on a request whose deadline has begun already. */
  function begin(exchange: Exchange): void {
    // The timer must not keep a stopping process alive: the connection of the request does.
    if (!exchange.isOver) exchange.deadline ??= setTimeout(expire, longest, exchange).unref();
  }

  return {
    begin,
    /** Must be called for each request that is over, and for one that goes on after its response, as in a WebSocket. */
    end(exchange: Exchange): void {
      clearTimeout(exchange.deadline);
      exchange.deadline = undefined;
    },
  };
}
