/** Runs the operations of WebSockets in the pipeline, as if each were a POST from the address of the request that opened the socket. */

import { type IncomingMessage, ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { requestSpans } from '../../channels.ts';
import type { UpgradeParts } from '../../extensionPoints.ts';
import { failureResponse } from '../../http/errorResponse.ts';
import {
  createExchange,
  type Exchange,
  forwardingHeaders,
  type OperationMessage,
  requestWithin,
} from '../../http/exchange.ts';
import { type HttpResponse, isResponse, type StreamedResponse } from '../../http/response.ts';

/** An operation, or the authentication of the client before its first operation. */
interface Incoming {
  /** The request id in the log. */
  readonly id: string;
  /** The value that a request would have in its `Authorization` header. */
  readonly authorization: string | undefined;
}

export type Operations = ReturnType<typeof createOperations>;

export function createOperations({ respond, authorize, watchToken, listener, responded }: UpgradeParts) {
  /** Opens the exchange of an operation. Its response is never sent by HTTP; `endExchange` ends it. */
  function openMessage(
    opening: IncomingMessage,
    { id, authorization }: Incoming,
    message: OperationMessage,
  ): Exchange {
    const request = requestWithin(opening, 'POST', '/graphql', {
      authorization,
      ...Object.fromEntries(forwardingHeaders.map((name) => [name, opening.headers[name]])),
      accept: 'application/graphql-response+json',
      'content-type': 'application/json',
    });
    const exchange = createExchange(request, new ServerResponse(request), id, listener, message);
    exchange.transport = 'websocket';
    return exchange;
  }

  // Messages that were read with this one are handled first: one of them may stop the operation.
  async function respondInTurn(exchange: Exchange) {
    await setImmediate();
    return respond(exchange);
  }

  return {
    /** Calls back, at most once, when the viewer's token ends. @returns a function that ends the watch. */
    watchToken,

    /**
     * Runs an operation as if it were a request: it is counted, limited, cached, logged and measured as one.
     * @param content the parsed value that a request would have in its body.
     * @returns an exchange, which the caller has to end, and the response, which never rejects. The stream of a subscription
     * has one result in each piece, and breaks off with an `OperationFailed`.
     */
    run(opening: IncomingMessage, incoming: Incoming, content: unknown) {
      let cutShort = (_: HttpResponse) => {};
      const cut = new Promise<HttpResponse>((settle) => {
        cutShort = settle;
      });
      const exchange = openMessage(opening, incoming, { content, cutShort });
      const running = requestSpans
        .tracePromise(respondInTurn, { exchange }, undefined, exchange)
        .catch((error: unknown) => failureResponse(exchange, error));
      const response = Promise.race([cut, running]).finally(() => responded(exchange));
      // A response that comes too late is not read.
      response.then((given) => running.then((late) => late !== given && discard(late))).catch(() => {});
      return { exchange, response };
    },

    /**
     * Authenticates a client, which counts as a request for the rate limit.
     * @returns the viewer, null for a token that is not valid; or the error response of a rejected request. Never rejects.
     */
    async identify(opening: IncomingMessage, incoming: Incoming) {
      const exchange = openMessage(opening, incoming, { content: undefined, cutShort() {} });
      exchange.operation = 'connection_init';
      const authorizing = (async () => authorize(exchange))();
      const access = await authorizing.catch((error: unknown) => failureResponse(exchange, error));
      endExchange(exchange, isResponse(access) ? access.status : access.viewer ? 200 : 401);
      return access;
    },
  };
}

function discard(response: HttpResponse | StreamedResponse): void {
  if (!('stream' in response)) return;
  response.stream.cancel().catch(() => {});
  response.ended();
}

/**
 * Ends an exchange whose response is not sent by HTTP.
 * @param status the status for the log; undefined for a client that left before there was one.
 */
export function endExchange({ response }: Exchange, status: number | undefined): void {
  if (status !== undefined && !response.headersSent) response.writeHead(status);
  response.emit('close');
}
