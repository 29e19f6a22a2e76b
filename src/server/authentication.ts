/** Whose token a request has: one of the gateway's own, or one of the upstream's. */

import { mayBeToken, type Viewer, type Viewers } from '../auth/viewer.ts';
import { addressOf } from '../http/clientAddress.ts';
import { errorResponse, httpErrors } from '../http/errorResponse.ts';
import type { Exchange } from '../http/exchange.ts';
import type { HttpResponse } from '../http/response.ts';
import type { MirrorService } from '../mirror/service.ts';
import { type Shed, tooBusy } from './shedding.ts';

/** Who may go on, null for an anonymous client; or the response to who may not. */
export type Access = { readonly viewer: Viewer | null } | HttpResponse;

export type Authenticator = (exchange: Exchange) => Access | Promise<Access>;

export interface AuthenticationOptions {
  readonly viewers: Viewers;
  readonly mirror: Pick<MirrorService, 'tokens'> | undefined;
  readonly shed: Shed;
  readonly trustedProxies: number;
}

export function createAuthentication({
  viewers,
  mirror,
  shed,
  trustedProxies,
}: AuthenticationOptions): Authenticator {
  const tokens = mirror?.tokens;

  async function lookUp(exchange: Exchange): Promise<Access> {
    const { request } = exchange;
    const { authorization } = request.headers;
    if (mayBeToken(authorization) && shed(exchange, null)) return tooBusy(exchange);
    const viewer = await viewers.authenticate(authorization);
    if (viewer || !tokens) return { viewer };
    const found = await tokens.authenticate(authorization, addressOf(request, trustedProxies));
    if ('viewer' in found) return found;
    return errorResponse(exchange.endpoint, httpErrors[found.error], {
      'Retry-After': String(found.retryAfter),
    });
  }

  return (exchange) => {
    const { authorization } = exchange.request.headers;
    const known = viewers.known(authorization) ?? tokens?.known(authorization);
    return known ? { viewer: known } : lookUp(exchange);
  };
}
