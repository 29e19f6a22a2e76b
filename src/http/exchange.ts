/** One request on its way through the gateway, and what its response has to carry. */

import { randomUUID } from 'node:crypto';
import { type IncomingMessage, ServerResponse } from 'node:http';
import type { HttpResponse } from './response.ts';
import { type Endpoint, endpointOf, pathOf, targetOf } from './target.ts';

/** The transports that carry the results of many operations. The log calls the request that opens one by this name. */
export const transports = ['websocket'] as const;

export type Transport = (typeof transports)[number];

/** An operation that has no request of its own, and the way to respond to it early. */
export interface OperationMessage {
  /** What a body would have, parsed from JSON. It is never written as JSON again, which has no `Infinity`. */
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
  /** The transport that carries the results; undefined where the response does. */
  transport: Transport | undefined;
  /** Set for an operation that came through a transport, and not in a request of its own. */
  readonly message: OperationMessage | undefined;
  /** Whether load shedding has let it begin, by its viewer. */
  hasBegun: boolean;
  /** The timer that ends a request without a response; undefined where no deadline has begun. */
  deadline: NodeJS.Timeout | undefined;
  /** The index among the exchanges under way. */
  position: number;
  /** Whether the response was sent, or the client has left. */
  isOver: boolean;
  /** Headers that are added to those of the response, or replace them. Values of `Vary` are joined. */
  readonly headers: Record<string, string>;
  /** Logs an error that the client does not get to see. */
  report(error: unknown): void;
}

/** An exchange that is over. */
export interface Outcome {
  readonly exchange: Exchange;
  /** The HTTP status, or undefined for a client that left before there was one. */
  readonly status: number | undefined;
  /** From the arrival of the head to the last byte handed over, in milliseconds. */
  readonly duration: number;
}

export interface ExchangeListener {
  began(exchange: Exchange): void;
  /** Called with an error that the client does not get to see. */
  failed(exchange: Exchange, error: unknown): void;
  /** Called when the exchange is over, however it ended. */
  ended(outcome: Outcome): void;
}

/** A request id that a client may choose. Any other could forge a line of the log, or put a token into it. */
const usableId = /^(?!dvt_)[\w.-]{1,64}$/;

export function openExchange(
  request: IncomingMessage,
  response: ServerResponse,
  listener: ExchangeListener,
): Exchange {
  return createExchange(request, response, { id: idOf(request), message: undefined, listener });
}

export interface MessageOptions {
  /** The id of the operation in the log. */
  readonly id: string;
  readonly authorization: string | undefined;
  readonly message: OperationMessage;
}

/**
 * Opens an exchange for an operation that came through a WebSocket. Handlers see a POST, from the address of the
 * request that opened the socket. Its response is never sent by HTTP; `endExchange` ends it.
 */
export function openMessage(
  opening: IncomingMessage,
  { id, authorization, message }: MessageOptions,
  listener: ExchangeListener,
): Exchange {
  const { host, 'x-forwarded-for': forwarded } = opening.headers;
  const headers: IncomingMessage['headers'] = {
    ...(host !== undefined && { host }),
    accept: 'application/graphql-response+json',
    'content-type': 'application/json',
    ...(authorization !== undefined && { authorization }),
    ...(forwarded !== undefined && { 'x-forwarded-for': forwarded }),
  };
  const own = { method: 'POST', url: '/graphql', headers, rawHeaders: [], complete: true };
  const request: IncomingMessage = Object.create(opening, Object.getOwnPropertyDescriptors(own));
  const exchange = createExchange(request, new ServerResponse(request), { id, message, listener });
  exchange.transport = 'websocket';
  return exchange;
}

export interface InnerRequest {
  readonly method: 'GET' | 'POST';
  readonly target: string;
  /** What its body would have; undefined for a request without a body. */
  readonly content: unknown;
}

/**
 * Creates the exchange of a request that is made inside another one, such as that of the route which a call of a tool stands
 * for. The client and the log see the outer exchange only.
 */
export function innerExchange(outer: Exchange, { method, target, content }: InnerRequest): Exchange {
  const { host, authorization } = outer.request.headers;
  const headers: IncomingMessage['headers'] = {
    ...(host !== undefined && { host }),
    ...(authorization !== undefined && { authorization }),
    accept: 'application/json',
    ...(content !== undefined && { 'content-type': 'application/json' }),
  };
  const rawHeaders = Object.entries(headers).flat();
  const ofRequest = { method, url: target, headers, rawHeaders, complete: true };
  const request: IncomingMessage = Object.create(outer.request, Object.getOwnPropertyDescriptors(ofRequest));
  const path = pathOf(target);
  // Set even without a body: the body of the outer request has been read already.
  const message = { content, cutShort() {} };
  return Object.create(outer, {
    ...Object.getOwnPropertyDescriptors({ request, target, path, endpoint: endpointOf(path), message }),
    operation: sharedWith(outer, 'operation'),
    deadline: sharedWith(outer, 'deadline'),
  });
}

/** A property that has the outer exchange's value, and sets it. */
function sharedWith<Name extends 'operation' | 'deadline'>(outer: Exchange, name: Name): PropertyDescriptor {
  return {
    get: () => outer[name],
    set(value: Exchange[Name]) {
      outer[name] = value;
    },
  };
}

/**
 * Ends an exchange whose response is not sent by HTTP.
 * @param status the status for the log; undefined for a client that left before there was one.
 */
export function endExchange({ response }: Exchange, status: number | undefined): void {
  if (status !== undefined && !response.headersSent) response.writeHead(status);
  response.emit('close');
}

/** The id of the request: the one that its client has given it, if that is usable. */
function idOf({ headers }: IncomingMessage): string {
  const given = headers['x-request-id'];
  const isUsable = typeof given === 'string' && usableId.test(given);
  // A token of the upstream may look like anything.
  return isUsable && !headers.authorization?.includes(given) ? given : randomUUID();
}

function createExchange(
  request: IncomingMessage,
  response: ServerResponse,
  {
    id,
    message,
    listener,
  }: { id: string; message: OperationMessage | undefined; listener: ExchangeListener },
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
    endpoint: endpointOf(path),
    operation: undefined,
    errorCode: undefined,
    cache: undefined,
    transport: undefined,
    message,
    hasBegun: false,
    deadline: undefined,
    position: -1,
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
  listener.began(exchange);
  return exchange;
}
