/** Who may ask how often: each token, and each address without one. */

import type { Config } from '../config/config.ts';
import type { Database } from '../database/database.ts';
import { addressOf } from './clientAddress.ts';
import type { Exchange } from './exchange.ts';
import { createRateLimit } from './rateLimit.ts';

/**
 * Counts a request, or as many as that, and returns whether they are too many. How things stand with who asks is told by the headers of the
 * response, whatever it will be.
 * @param key what requests of the same token are counted under; undefined for an anonymous client.
 */
export type RateLimits = (exchange: Exchange, key: string | undefined, requests?: number) => boolean;

/** @param database where gateways that share it tell each other what they counted. */
export function createRateLimits(
  config: Pick<Config, 'RATE_LIMIT' | 'RATE_LIMIT_ANONYMOUS' | 'TRUST_PROXY'>,
  { embedded, pool }: Pick<Database, 'embedded' | 'pool'>,
): RateLimits {
  const shared = embedded ? undefined : pool;
  const tokens = createRateLimit({ name: 'token', limit: config.RATE_LIMIT, shared });
  const addresses = createRateLimit({ name: 'address', limit: config.RATE_LIMIT_ANONYMOUS, shared });
  return (exchange, key, requests) => {
    const { isExceeded, headers } =
      key === undefined
        ? addresses.spend(addressOf(exchange.request, config.TRUST_PROXY), requests)
        : tokens.spend(key, requests);
    Object.assign(exchange.headers, headers);
    return isExceeded;
  };
}
