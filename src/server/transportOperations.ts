/** Runs operations that come through WebSockets by the pipeline, as if each were a request. */

import { setImmediate } from 'node:timers/promises';
import { requestSpans } from '../channels.ts';
import type { PipelineAccess } from '../graphql/transports/protocol.ts';
import { errorResponse, httpErrors } from '../http/errorResponse.ts';
import { type Exchange, type ExchangeListener, endExchange, openMessage } from '../http/exchange.ts';
import { type HttpResponse, isResponse, type StreamedResponse } from '../http/response.ts';
import type { Pipeline } from './options.ts';

/** @param responded told of each operation that has its response: that of a subscription then lasts as long as it likes. */
export function createOperations(
  { respond, authorize, watch }: Pick<Pipeline, 'respond' | 'authorize' | 'watch'>,
  listener: ExchangeListener,
  responded: (exchange: Exchange) => void,
): PipelineAccess {
  // What was read together with it goes first: that its client wants it no more, for one.
  async function respondInTurn(exchange: Exchange) {
    await setImmediate();
    return respond(exchange);
  }

  return {
    watch,

    run(opening, { content, ...incoming }) {
      let cutShort = (_: HttpResponse) => {};
      const cut = new Promise<HttpResponse>((settle) => {
        cutShort = settle;
      });
      const exchange = openMessage(opening, { ...incoming, message: { content, cutShort } }, listener);
      const running = requestSpans
        .tracePromise(respondInTurn, { exchange }, undefined, exchange)
        .catch((error: unknown) => {
          exchange.report(error);
          return errorResponse(exchange.endpoint, httpErrors.internal);
        });
      const response = Promise.race([cut, running]).finally(() => responded(exchange));
      // What comes too late is read by nobody.
      response.then((given) => running.then((late) => late !== given && discard(late))).catch(() => {});
      return { exchange, response };
    },

    async identify(opening, incoming) {
      const exchange = openMessage(
        opening,
        { ...incoming, message: { content: undefined, cutShort() {} } },
        listener,
      );
      exchange.operation = 'connection_init';
      try {
        const who = await authorize(exchange);
        endExchange(exchange, isResponse(who) ? who.status : who.viewer ? 200 : 401);
        return who;
      } catch (error) {
        exchange.report(error);
        endExchange(exchange, 500);
        return errorResponse('graphql', httpErrors.internal);
      }
    },
  };
}

function discard(response: HttpResponse | StreamedResponse): void {
  if (!('stream' in response)) return;
  response.stream?.cancel().catch(() => {});
  response.ended();
}
