/** Whose token a request has: one of the gateway's own, or one of the upstream's. */

import { mayBeToken, type Viewer, type Viewers } from '../auth/viewer.ts';
import { addressOf } from '../http/clientAddress.ts';
import type { Exchange } from '../http/exchange.ts';
import { tooBusy } from '../http/loadShedding.ts';
import type { HttpResponse } from '../http/response.ts';
import type { MirrorService } from '../mirror/service.ts';

/** The viewer, null for an anonymous client; or why it cannot be told who asks. */
export type AuthenticationResult =
  | { readonly viewer: Viewer | null }
  | HttpResponse
  | {
      readonly error: 'tooManyRequests' | 'upstreamAway';
      readonly headers?: Record<string, string>;
    };

/** Whether a request is turned away since there is too much load; settles when it is its turn. */
export type Shed = (exchange: Exchange, viewer: Viewer | null, size?: number) => boolean | Promise<boolean>;

export type Authenticator = (exchange: Exchange) => AuthenticationResult | Promise<AuthenticationResult>;

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

  async function lookUp(exchange: Exchange): Promise<AuthenticationResult> {
    const { request } = exchange;
    const { authorization } = request.headers;
    if (mayBeToken(authorization) && (await shed(exchange, null))) return tooBusy(exchange);
    const viewer = await viewers.authenticate(authorization);
    if (viewer || !tokens) return { viewer };
    const found = await tokens.authenticate(authorization, addressOf(request, trustedProxies));
    if ('viewer' in found) return found;
    return { error: found.error, headers: { 'Retry-After': String(found.retryAfter) } };
  }

  return (exchange) => {
    const { headers, socket } = exchange.request;
    const known = viewers.known(headers.authorization, socket) ?? tokens?.known(headers.authorization);
    return known ? { viewer: known } : lookUp(exchange);
  };
}
