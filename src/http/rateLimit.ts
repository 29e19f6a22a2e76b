/** Rate limits: how often somebody has asked in this minute, whether that was too often, and which address a request comes from. */

import type { IncomingMessage } from 'node:http';
import ipaddr from 'ipaddr.js';
import type pg from 'pg';
import proxyAddr from 'proxy-addr';
// By its own file: the index loads the limiters of all databases there are.
import RateLimiterPostgres from 'rate-limiter-flexible/lib/RateLimiterPostgres.js';
import type { Config } from '../config/config.ts';
import type { Exchange } from './exchange.ts';

/**
 * Counts a request, or as many as that, and returns whether they are too many. Sets the `RateLimit` headers of the response.
 * @param key what requests of the same token are counted under; undefined for an anonymous client.
 */
export type RateLimits = (exchange: Exchange, key: string | undefined, requests?: number) => boolean;

/**
 * The limits of each token, and of each address without one.
 * @param shared where gateways that share a database tell each other what they counted; undefined for one alone.
 */
export function createRateLimits(
  config: Pick<Config, 'RATE_LIMIT' | 'RATE_LIMIT_ANONYMOUS' | 'TRUST_PROXY'>,
  shared: pg.Pool | undefined,
): RateLimits {
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

export interface RateLimitOptions {
  /** What the headers call it. */
  readonly name: string;
  /** Requests a minute; 0 for no limit. */
  readonly limit: number;
  /** Where gateways over the same database tell each other what they counted; undefined for one alone. */
  readonly shared: pg.Pool | undefined;
}

export type RateLimit = ReturnType<typeof createRateLimit>;

/** In seconds. */
const window = 60;

/** A gateway tells the others what it counted in this many portions of the limit. */
const portions = 20;

/**
 * In milliseconds by a clock that nobody sets. Whole ones, with which sums are exact: of a time with a fraction, a window may
 * end after 60.00000000000001 seconds, which a client would be told as 61.
 */
const currentTime = () => Math.floor(performance.now());

/** What was counted in a window, which begins with its first request. */
interface Count {
  points: number;
  /** Those of them that other gateways have not been told of. */
  untold: number;
  /** Those of them that came after the last attempt to tell the others. */
  recent: number;
  /** By `currentTime`. */
  ends: number;
}

/**
 * Counts in memory, so that no request waits for the database. Gateways that share one tell it a portion at a time
 * and hear what all of them counted: together they let through at most a portion each more than the limit, and what comes
 * before they hear. A gateway that cannot reach the database counts for itself, and tells the others later.
 */
export function createRateLimit({ name, limit, shared }: RateLimitOptions) {
  /** The ones that end first come first, as all windows are as long; those that were heard of from others end sooner. */
  const counts = new Map<string, Count>();
  const store = shared && limit > 0 ? createStore(name, limit, shared) : undefined;
  const portion = Math.ceil(limit / portions);

  function current(key: string, now: number): Count {
    const known = counts.get(key);
    if (known && known.ends > now) return known;
    for (const [old, { ends }] of counts) {
      if (ends > now) break;
      counts.delete(old);
    }
    const begun = { points: 0, untold: 0, recent: 0, ends: now + window * 1_000 };
    // Behind all others, where it may have had a place among them.
    counts.delete(key);
    counts.set(key, begun);
    return begun;
  }

  /** Adds the points to what all gateways counted, and counts on from there if that is more. */
  async function tell(key: string, points: number, ends: number): Promise<void> {
    // Where nobody else counts yet, the common window must not end after ours: clients have been told when that ends. The
    // store takes whole seconds, and 0 for a window without an end.
    const customDuration = Math.max(1, Math.floor((ends - currentTime()) / 1_000));
    const told = await store?.penalty(key, points, { customDuration });
    const now = currentTime();
    const count = current(key, now);
    if (!told || told.consumedPoints + count.untold <= count.points) return;
    count.points = told.consumedPoints + count.untold;
    // The clock of the gateway that began to count may be ahead of ours by hours.
    count.ends = now + Math.min(told.msBeforeNext, window * 1_000);
  }

  function share(key: string, count: Count, requests: number): void {
    count.untold += requests;
    count.recent += requests;
    if (count.recent < portion) return;
    const points = count.untold;
    count.untold = 0;
    count.recent = 0;
    // After a failure with the next portion, so that not each request asks a database that is away.
    tell(key, points, count.ends).catch(() => {
      count.untold += points;
    });
  }

  const policy = `"${name}";q=${limit};w=${window}`;
  return {
    /**
     * Counts a request, or as many as that.
     * @returns the headers of draft-ietf-httpapi-ratelimit-headers-10, and `Retry-After` for a limit that is exceeded.
     */
    spend(key: string, requests = 1) {
      if (limit === 0) return { isExceeded: false, headers: {} };
      const now = currentTime();
      const count = current(key, now);
      count.points += requests;
      const isExceeded = count.points > limit;
      const reset = Math.ceil((count.ends - now) / 1_000);
      const headers: Record<string, string> = {
        'RateLimit-Policy': policy,
        RateLimit: `"${name}";r=${Math.max(limit - count.points, 0)};t=${reset}`,
      };
      if (isExceeded) headers['Retry-After'] = String(reset);
      // Requests over the limit are not told: a client that asks too often must not make the gateway write.
      else if (store) share(key, count, requests);
      return { isExceeded, headers };
    },
  };
}

/** What all gateways over the database have counted. */
const createStore = (name: string, limit: number, pool: pg.Pool) =>
  new RateLimiterPostgres({
    // Without the names that it gives its statements, which a pooler may not know.
    storeClient: {
      query: ({ text, values }: pg.QueryConfig) => pool.query(text, values),
    },
    storeType: 'pool',
    tableName: 'RateLimit',
    tableCreated: true,
    keyPrefix: name,
    points: limit,
    duration: window,
  });

/**
 * Where the request comes from, as far as the proxies that are trusted tell: each of them adds the address that it
 * was called from at the end of `X-Forwarded-For`. Of IPv6 only the network counts, since whoever has one address of
 * a network has all of them.
 */
export function addressOf(request: IncomingMessage, trustedProxies: number): string {
  return networkOf(proxyAddr(request, (_address, hop) => hop < trustedProxies) ?? '');
}

/** How many of the eight groups of an IPv6 address name the network. */
const networkGroups = 4;

/** What is no address counts as it is written. */
function networkOf(hop: string): string {
  // Some proxies add the port.
  const written = hop.replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1').replace(/^\[([^\]]*)\](:\d+)?$/, '$1');
  if (!ipaddr.isValid(written)) return written;
  // `process` gives the IPv4 address that an IPv6 one may stand for.
  const address = ipaddr.process(written);
  if (address instanceof ipaddr.IPv4) return address.toString();
  return address.parts
    .slice(0, networkGroups)
    .map((group) => group.toString(16))
    .join(':');
}
