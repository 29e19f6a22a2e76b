/** Rate limits: counts the requests of each token and address in a minute. */

import type pg from 'pg';
import { RateLimiterPostgres } from 'rate-limiter-flexible';
import type { Config } from '../config/config.ts';
import { addressOf } from './clientAddress.ts';
import type { Exchange } from './exchange.ts';

/** The limits of each token, and of each address without one. @param shared as for `createRateLimit`. */
export function createRateLimits(
  config: Pick<Config, 'RATE_LIMIT' | 'RATE_LIMIT_ANONYMOUS' | 'TRUST_PROXY'>,
  shared: pg.Pool | undefined,
) {
  const tokens = createRateLimit('token', config.RATE_LIMIT, shared);
  const addresses = createRateLimit('address', config.RATE_LIMIT_ANONYMOUS, shared);
  /**
   * Counts a request, and sets the `RateLimit` headers of the response. Returns after how many seconds the client may try
   * again if that exceeds the limit, undefined otherwise.
   * @param key the key for requests of the same token; undefined for an anonymous client.
   */
  return (exchange: Exchange, key: string | undefined): number | undefined => {
    const { isExceeded, headers } =
      key === undefined
        ? addresses.spend(addressOf(exchange.request, config.TRUST_PROXY))
        : tokens.spend(key);
    Object.assign(exchange.headers, headers);
    return isExceeded ? Number(headers['Retry-After']) : undefined;
  };
}

/** In seconds. */
const window = 60;

/** A gateway shares its counts in portions: this many make the limit. */
const portions = 20;

/**
 * In milliseconds, by a clock that nobody can set. They are whole, so that sums are exact: with fractions, a window could end after
 * 60.00000000000001 seconds, which the header would round up to 61.
 */
const currentTime = () => Math.floor(performance.now());

/** The count of a window, which begins with its first request. */
interface Count {
  points: number;
  /** The part that is not shared with other gateways yet. */
  untold: number;
  /** The part that was counted after the last attempt to share. */
  recent: number;
  /** By `currentTime`. */
  ends: number;
}

/** Returns a function that finds the count of a key, or begins one. */
function createCounts(): (key: string, now: number) => Count {
  /** In the order in which they end, since all windows have the same length. Windows that other gateways began end sooner. */
  const counts = new Map<string, Count>();
  return (key, now) => {
    const known = counts.get(key);
    if (known && known.ends > now) return known;
    for (const [old, { ends }] of counts) {
      if (ends > now) break;
      counts.delete(old);
    }
    const begun = { points: 0, untold: 0, recent: 0, ends: now + window * 1_000 };
    // Moves it to the end.
    counts.delete(key);
    counts.set(key, begun);
    return begun;
  };
}

/**
 * Counts in memory, so that no request waits for the database. Gateways over one database add their counts to it a portion at a time,
 * and get the sum of all. So each may exceed the limit by a portion, and by the requests before it gets the sum. A gateway that
 * cannot reach the database counts alone, and shares later.
 * @param name its name in the headers.
 * @param limit requests a minute; 0 for no limit.
 * @param shared the database in which several gateways share their counts; undefined for a single gateway.
 */
export function createRateLimit(name: string, limit: number, shared: pg.Pool | undefined) {
  const current = createCounts();
  const store = shared && limit > 0 ? createCountStore(name, limit, shared) : undefined;
  const portion = Math.ceil(limit / portions);

  /** Adds the points to the count of all gateways, and takes over that count if it is higher. */
  async function tell(key: string, points: number, ends: number): Promise<void> {
    // If no other gateway counts yet, the common window must not end after ours: clients know the end of ours. The store takes
    // whole seconds, and 0 for a window without an end.
    const customDuration = Math.max(1, Math.floor((ends - currentTime()) / 1_000));
    const told = await store?.penalty(key, points, { customDuration });
    const now = currentTime();
    const count = current(key, now);
    if (!told || told.consumedPoints + count.untold <= count.points) return;
    count.points = told.consumedPoints + count.untold;
    // The clock of the gateway that began to count may be ahead of ours by hours.
    count.ends = now + Math.min(told.msBeforeNext, window * 1_000);
  }

  function share(key: string, count: Count): void {
    count.untold++;
    count.recent++;
    if (count.recent < portion) return;
    const points = count.untold;
    count.untold = 0;
    count.recent = 0;
    // After a failure the next portion tries again, rather than each request.
    tell(key, points, count.ends).catch(() => {
      count.untold += points;
    });
  }

  const policy = `"${name}";q=${limit};w=${window}`;
  return {
    /**
     * Counts a request.
     * @returns the headers of draft-ietf-httpapi-ratelimit-headers-10, and `Retry-After` for a limit that is exceeded.
     */
    spend(key: string) {
      if (limit === 0) return { isExceeded: false, headers: {} };
      const now = currentTime();
      const count = current(key, now);
      count.points++;
      const isExceeded = count.points > limit;
      const reset = Math.ceil((count.ends - now) / 1_000);
      const headers: Record<string, string> = {
        'RateLimit-Policy': policy,
        RateLimit: `"${name}";r=${Math.max(limit - count.points, 0)};t=${reset}`,
      };
      if (isExceeded) headers['Retry-After'] = String(reset);
      // Requests over the limit are not shared: a client over its limit must not make the gateway write.
      else if (store) share(key, count);
      return { isExceeded, headers };
    },
  };
}

/** The pool without names of prepared statements, which not every pooler supports. */
const withoutNames = (pool: pg.Pool): pg.Pool =>
  Object.create(pool, {
    query: {
      value: ({ text, values }: pg.QueryConfig) => pool.query(text, values),
    },
  });

/** The counts of all gateways over the database. */
const createCountStore = (name: string, limit: number, pool: pg.Pool) =>
  new RateLimiterPostgres({
    storeClient: withoutNames(pool),
    storeType: 'pool',
    tableName: 'RateLimit',
    tableCreated: true,
    keyPrefix: name,
    points: limit,
    duration: window,
  });
