/**
 * Who may go on: finds out whose token a request has, counts the request, and rejects it while too many wait for the database.
 * A request is rejected before anything of it is done, or not at all. `database/turns.ts` decides which.
 */

import { mayBeToken, type Viewer, type Viewers } from '../auth/viewer.ts';
import { createTurns } from '../database/turns.ts';
import { addressOf } from '../http/clientAddress.ts';
import { errorResponse, httpErrors } from '../http/errorResponse.ts';
import type { Deadlines, Exchange } from '../http/exchange.ts';
import { createRateLimits } from '../http/rateLimit.ts';
import type { HttpResponse } from '../http/response.ts';
import type { ServerOptions } from './options.ts';

/** Who may go on, null for an anonymous client; or the response to a client that may not. */
export type Access = { readonly viewer: Viewer | null } | HttpResponse;

/**
 * Rejects a request that may not begin, and begins the deadline of one that may. Must be called before a request uses the database:
 * without a viewer before the token is looked up, and with the viewer before anything is done for it. After that the request is
 * never rejected. @returns whether it was rejected.
 */
export type Shed = (exchange: Exchange, viewer: Viewer | null) => boolean;

/** The response to a rejected request. */
export const tooBusy = ({ endpoint }: Pick<Exchange, 'endpoint'>) =>
  errorResponse(endpoint, httpErrors.tooBusy, { 'Retry-After': '1' });

export function createAccess(
  { config, database, mirror, metrics }: Pick<ServerOptions, 'config' | 'database' | 'mirror' | 'metrics'>,
  viewers: Viewers,
  deadlines: Deadlines,
) {
  const tokens = mirror?.tokens;
  const limitRate = createRateLimits(config, database.embedded ? undefined : database.pool);
  const turns = createTurns({ connections: database.pool.options.max, maxWaiting: config.MAX_WAITING });
  metrics?.watchLoad(turns.figures);

  const shed: Shed = (exchange, viewer) => {
    if (exchange.hasBegun) return false;
    if (!turns.admit(viewer?.id ?? addressOf(exchange.request, config.TRUST_PROXY))) return true;
    exchange.hasBegun = viewer !== null;
    deadlines.begin(exchange);
    return false;
  };

  /** Counts requests. @returns the response if they are too many. */
  function count(exchange: Exchange, viewer: Viewer | null, requests?: number): HttpResponse | undefined {
    const isExceeded = limitRate(exchange, rateKeyOf(viewer), requests);
    return isExceeded ? errorResponse(exchange.endpoint, httpErrors.tooManyRequests) : undefined;
  }

  async function lookUp(exchange: Exchange): Promise<Access> {
    const { authorization } = exchange.request.headers;
    if (mayBeToken(authorization) && shed(exchange, null)) return tooBusy(exchange);
    const viewer = await viewers.authenticate(authorization);
    if (viewer || !tokens) return counted(exchange, viewer);
    const found = await tokens.authenticate(authorization, addressOf(exchange.request, config.TRUST_PROXY));
    if ('viewer' in found) return counted(exchange, found.viewer);
    return errorResponse(exchange.endpoint, httpErrors[found.error], {
      'Retry-After': String(found.retryAfter),
    });
  }

  function counted(exchange: Exchange, viewer: Viewer | null): Access {
    exchange.hasViewer = viewer !== null;
    return count(exchange, viewer) ?? { viewer };
  }

  return {
    /** Lets users take turns with their statements. */
    turns,
    shed,
    count,
    /**
     * A request is counted once its viewer is known: a client with a token is not anonymous, however many clients are at its
     * address, and nobody is at fault when a token cannot be looked up.
     */
    authorize(exchange: Exchange): Access | Promise<Access> {
      const { authorization } = exchange.request.headers;
      const known = viewers.known(authorization) ?? tokens?.known(authorization);
      return known ? counted(exchange, known) : lookUp(exchange);
    },
  };
}

/** Requests with a token of the upstream are counted by their user: nothing of the token itself may be noted. */
function rateKeyOf(viewer: Viewer | null): string | undefined {
  if (!viewer) return undefined;
  return viewer.tokenId === undefined ? `user ${viewer.id}` : String(viewer.tokenId);
}
