/**
 * Load shedding as the pipeline does it: rejects requests while too many wait for the database. It promises that a request is
 * rejected before anything of it is done, or not at all. `database/turns.ts` decides which.
 */

import type { Viewer } from '../auth/viewer.ts';
import { createTurns, type Turns } from '../database/turns.ts';
import { addressOf } from '../http/clientAddress.ts';
import type { Deadlines } from '../http/deadlines.ts';
import { errorResponse, httpErrors } from '../http/errorResponse.ts';
import type { Exchange } from '../http/exchange.ts';
import type { HttpResponse } from '../http/response.ts';
import type { Endpoint } from '../http/target.ts';
import type { ServerOptions } from './options.ts';

/**
 * Rejects a request that may not begin, and begins the deadline of one that may. Must be called before a request uses the database:
 * without a viewer before the token is looked up, and with the viewer before anything is done for it. After that the request is
 * never rejected. @returns whether it was rejected.
 */
export type Shed = (exchange: Exchange, viewer: Viewer | null) => boolean;

export interface Shedding {
  readonly shed: Shed;
  /** Lets users take turns with their statements. */
  readonly turns: Turns;
}

export function createShedding(
  { config, database, metrics }: Pick<ServerOptions, 'config' | 'database' | 'metrics'>,
  deadlines: Deadlines,
): Shedding {
  const turns = createTurns({
    connections: database.pool.options.max,
    maxWaiting: config.MAX_WAITING,
  });
  metrics?.watchLoad(turns.figures);
  return {
    turns,
    shed(exchange, viewer) {
      if (exchange.hasBegun) return false;
      if (!turns.admit(viewer?.id ?? addressOf(exchange.request, config.TRUST_PROXY))) return true;
      exchange.hasBegun = viewer !== null;
      deadlines.begin(exchange);
      return false;
    },
  };
}

/** In seconds. */
const retryAfter = '1';

/** Made once: rejecting a request must cost next to nothing. */
const busy: Readonly<Record<Endpoint, HttpResponse>> = {
  rest: prepare('rest'),
  graphql: prepare('graphql'),
  mcp: prepare('mcp'),
  page: prepare('page'),
};

function prepare(endpoint: Endpoint): HttpResponse {
  const response = errorResponse(endpoint, httpErrors.tooBusy, { 'Retry-After': retryAfter });
  return { ...response, forms: new Map() };
}

/** The response to a rejected request. */
export const tooBusy = ({ endpoint }: Pick<Exchange, 'endpoint'>): HttpResponse => busy[endpoint];
