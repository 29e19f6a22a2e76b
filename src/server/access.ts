/** The first steps of every request and operation: who asks, and whether they have asked too often. */

import type { Viewer } from '../auth/viewer.ts';
import { errorResponse, httpErrors } from '../http/errorResponse.ts';
import type { Exchange } from '../http/exchange.ts';
import type { RateLimits } from '../http/rateLimit.ts';
import { isResponse } from '../http/response.ts';
import type { Access, Authenticator } from './authentication.ts';

export interface AccessOptions {
  readonly authenticate: Authenticator;
  readonly limitRate: RateLimits;
}

/**
 * Whoever asks is known before anything is counted: who has a token is not anonymous, however many clients at the address
 * are, and it is nobody's fault when a token could not be looked up.
 */
export function createAccess({ authenticate, limitRate }: AccessOptions) {
  function count(exchange: Exchange, identified: Access): Access {
    if (isResponse(identified)) return identified;
    const isExceeded = limitRate(exchange, rateKeyOf(identified.viewer));
    return isExceeded ? errorResponse(exchange.endpoint, httpErrors.tooManyRequests) : identified;
  }

  return (exchange: Exchange): Access | Promise<Access> => {
    const identified = authenticate(exchange);
    return identified instanceof Promise
      ? identified.then((late) => count(exchange, late))
      : count(exchange, identified);
  };
}

/** Requests with a token of the upstream's are counted by whose it is: nothing of the token itself may be noted. */
export function rateKeyOf(viewer: Viewer | null): string | undefined {
  if (!viewer) return undefined;
  return viewer.tokenId === undefined ? `user ${viewer.id}` : String(viewer.tokenId);
}
