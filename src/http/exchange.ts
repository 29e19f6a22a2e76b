/** One request on its way through the gateway, and what its response has to carry. */

import { randomUUID } from 'node:crypto';
import { type IncomingMessage, ServerResponse } from 'node:http';
import type { HttpResponse } from './response.ts';
import { type Endpoint, endpointOf, pathOf, targetOf } from './target.ts';

/** Connections that carry the results of many operations. The log calls the request that opens one by this name. */
export const transports = ['websocket', 'event stream'] as const;

export type Transport = (typeof transports)[number];

/** What there is of an operation in place of a request and a response. */
export interface OperationMessage {
  readonly body: Buffer;
  /** Takes the response that is to be given at once, whatever becomes of the operation. */
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
   * What was asked for, as the log says it: a route without its id, or the kind and the root field of a GraphQL
   * operation. One of few, and never what a client wrote.
   */
  operation: string | undefined;
  /** The code of the first error in a GraphQL response. */
  errorCode: string | undefined;
  /** Whether there was a cached response; undefined for what is never cached. */
  cache: 'hit' | 'miss' | undefined;
  /** What carries the results, where that is not the response. */
  transport: Transport | undefined;
  /** Set for an operation that no request of its own has brought. */
  readonly message: OperationMessage | undefined;
  /** As how many requests it was let through to the database, or waits for that; 0 before. */
  countsAs: number;
  /** Whose turn at the database it had to wait for; undefined for one that has not needed it. */
  waitsAs: number | string | undefined;
  /** Whether the response was sent, or never will be: what is done from then on is for nobody. */
  isOver: boolean;
  /** Headers that the response has beside its own, and in their place; what it varies by, it does as well. */
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
  /** Told of an error that the client does not get to see. */
  failed(exchange: Exchange, error: unknown): void;
  /** Told when the exchange is over, however it ended. */
  ended(outcome: Outcome): void;
}

/** What a client may call its request: anything else could make a log say what it likes, or tell it a token. */
const usableId = /^(?!dvt_)[\w.-]{1,64}$/;

export function openExchange(
  request: IncomingMessage,
  response: ServerResponse,
  listener: ExchangeListener,
): Exchange {
  return createExchange(request, response, { id: idOf(request), message: undefined, listener });
}

export interface MessageOptions {
  /** What the operation is called in the log. */
  readonly id: string;
  readonly authorization: string | undefined;
  readonly message: OperationMessage;
  readonly transport: Transport;
}

/**
 * An operation that came in another way than as a request of its own, such as through a WebSocket. It is a POST to whoever
 * handles it, from the address of the request that opened that way. Its response is never sent; `conclude` ends it.
 */
export function openMessage(
  opening: IncomingMessage,
  { id, authorization, message, transport }: MessageOptions,
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
  exchange.transport = transport;
  return exchange;
}

export interface InnerRequest {
  readonly method: 'GET' | 'POST';
  readonly target: string;
  /** In JSON; undefined for a request without a body. */
  readonly body: Buffer | undefined;
}

/**
 * A request of one of the APIs that another request stands for, such as the call of a tool: for whoever handles it. What the
 * client sees, and what the log says, is that of the request that came.
 */
export function innerExchange(outer: Exchange, { method, target, body }: InnerRequest): Exchange {
  const { host, authorization } = outer.request.headers;
  const headers: IncomingMessage['headers'] = {
    ...(host !== undefined && { host }),
    ...(authorization !== undefined && { authorization }),
    accept: 'application/json',
    ...(body && { 'content-type': 'application/json' }),
  };
  const rawHeaders = Object.entries(headers).flat();
  const ofRequest = { method, url: target, headers, rawHeaders, complete: true };
  const request: IncomingMessage = Object.create(outer.request, Object.getOwnPropertyDescriptors(ofRequest));
  const path = pathOf(target);
  // Also where there is no body: that of the request that came was read.
  const message = { body: body ?? Buffer.alloc(0), cutShort() {} };
  return Object.create(outer, {
    ...Object.getOwnPropertyDescriptors({ request, target, path, endpoint: endpointOf(path), message }),
    operation: {
      get: () => outer.operation,
      set(operation: string | undefined) {
        outer.operation = operation;
      },
    },
  });
}

/**
 * Ends an exchange whose response is not sent by HTTP.
 * @param status what it would have been; undefined for a client that left before.
 */
export function conclude({ response }: Exchange, status: number | undefined): void {
  if (status !== undefined && !response.headersSent) response.writeHead(status);
  response.emit('close');
}

/** What the request is called, by its client if it may be. */
export function idOf({ headers }: IncomingMessage): string {
  const given = headers['x-request-id'];
  const isUsable = typeof given === 'string' && usableId.test(given);
  // Somebody's token is not always known by how it begins.
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
    countsAs: 0,
    waitsAs: undefined,
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
  return exchange;
}
