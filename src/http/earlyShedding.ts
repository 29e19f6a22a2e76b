/**
 * Turns requests away before anything is made of them, while there is more to do than this process has time for: a 503
 * that goes the way of every request takes so much of the processor that too little is left for those that are let through.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Exchange, idOf } from './exchange.ts';
import { type LoadShedder, tooBusy } from './loadShedding.ts';
import { headersOf } from './response.ts';
import { endpointOf, pathOf } from './target.ts';

export interface EarlyShedder {
  /**
   * Sends the 503, and returns whether it has.
   * @param last the exchange before, by the same connection: whoever sent that is asking again.
   */
  rejectEarly(request: IncomingMessage, response: ServerResponse, last: Exchange | undefined): boolean;
}

export interface EarlySheddingOptions {
  readonly shedder: Pick<LoadShedder, 'isOverload' | 'tryReject'>;
  /** Told of each request that was rejected. */
  onRejected(endpoint: Exchange['endpoint']): void;
}

export function createEarlyShedder({ shedder, onRejected }: EarlySheddingOptions): EarlyShedder {
  const loop = watchLoop();
  return {
    rejectEarly(request, response, last) {
      if (!shedder.isOverload()) return false;
      loop.noteRequest();
      if (!loop.isBehind() || !last || !isAskedAgain(request, last)) return false;
      // A request that needed the database is mostly followed by another that does. An address may be that of a proxy, which
      // sends what comes from others over the same connection.
      if (typeof last.waitsAs !== 'number' || !shedder.tryReject(last.waitsAs)) return false;
      const { endpoint } = last;
      const busy = tooBusy({ endpoint });
      const exchange = { headers: { 'X-Request-Id': idOf(request), 'X-Content-Type-Options': 'nosniff' } };
      response.writeHead(busy.status, headersOf(exchange, busy.headers, busy));
      response.end(busy.body.toString('latin1'), 'latin1');
      onRejected(endpoint);
      return true;
    },
  };
}

/** Whether the same client asks something of the same API. What a browser needs to be told, it is told in the usual way. */
function isAskedAgain({ method, url = '/', headers }: IncomingMessage, last: Exchange): boolean {
  return (
    headers.authorization === last.request.headers.authorization &&
    headers.origin === undefined &&
    headers.expect === undefined &&
    method !== 'OPTIONS' &&
    endpointOf(pathOf(url)) === last.endpoint
  );
}

/** In milliseconds. While one turn of the event loop takes longer, requests wait in the operating system, uncounted. */
const longestTurn = 10;

/** In milliseconds. The loop counts as behind for this long after a turn that was too long. */
const remembered = 1_000;

/** Watches how long the turns of the event loop are, as far as they have requests in them. */
function watchLoop() {
  let began: number | undefined;
  let lastBehind = Number.NEGATIVE_INFINITY;

  function endTurn(): void {
    look(performance.now());
    began = undefined;
  }

  function look(now: number): void {
    if (began !== undefined && now - began > longestTurn) lastBehind = now;
  }

  return {
    /** Must be called for each request that comes. */
    noteRequest(): void {
      const now = performance.now();
      if (began === undefined) {
        began = now;
        setImmediate(endTurn);
      }
      look(now);
    },
    /** Whether a turn of the event loop has been too long, a moment ago or now. */
    isBehind: () => performance.now() - lastBehind < remembered,
  };
}
