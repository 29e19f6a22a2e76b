/** Rate limits: how often somebody has asked in this minute, and whether that was too often. */

import { LRUCache } from 'lru-cache';
import type pg from 'pg';
// Each by its own file: the index loads the limiters of all databases there are.
import RateLimiterMemory from 'rate-limiter-flexible/lib/RateLimiterMemory.js';
import RateLimiterPostgres from 'rate-limiter-flexible/lib/RateLimiterPostgres.js';

export interface RateLimitOptions {
  /** What the headers call it. */
  readonly name: string;
  /** Requests a minute; 0 for as many as anybody likes. */
  readonly limit: number;
  /** Where gateways over the same database tell each other what they counted; undefined for one alone. */
  readonly shared: pg.Pool | undefined;
}

export interface RateLimit {
  /** Counts a request, or as many as that. */
  spend(key: string, requests?: number): Promise<Standing>;
}

export interface Standing {
  readonly isExceeded: boolean;
  /** The headers of draft-ietf-httpapi-ratelimit-headers-10, and `Retry-After` for a limit that is exceeded. */
  readonly headers: Readonly<Record<string, string>>;
}

/** In seconds. */
const window = 60;

/** A gateway tells the others what it counted in this many portions of the limit. */
const portions = 20;

/** How many keys may have counts that are smaller than a portion. */
const maxUntold = 10_000;

const noLimit: RateLimit = {
  spend: async () => ({ isExceeded: false, headers: {} }),
};

/**
 * Counts in memory, so that no request waits for the database. Gateways that share one tell it a portion at a time
 * and hear what all of them counted: together they let through at most a portion each more than the limit, and a
 * gateway that cannot reach the database counts for itself.
 */
export function createRateLimit({ name, limit, shared }: RateLimitOptions): RateLimit {
  if (limit === 0) return noLimit;
  const memory = new RateLimiterMemory({ keyPrefix: name, points: limit, duration: window });
  const note = shared ? shareCounts(memory, shared) : () => {};
  const policy = `"${name}";q=${limit};w=${window}`;
  return {
    async spend(key, requests = 1) {
      const { consumedPoints, msBeforeNext } = await memory.penalty(key, requests);
      const isExceeded = consumedPoints > limit;
      // What is over the limit is not told: whoever asks too often must not make the gateway write.
      if (!isExceeded) note(key, requests);
      const reset = Math.ceil(msBeforeNext / 1_000);
      const headers: Record<string, string> = {
        'RateLimit-Policy': policy,
        RateLimit: `"${name}";r=${Math.max(limit - consumedPoints, 0)};t=${reset}`,
      };
      if (isExceeded) headers['Retry-After'] = String(reset);
      return { isExceeded, headers };
    },
  };
}

/** Returns a function that must be told of all that is counted in the memory. */
function shareCounts(memory: RateLimiterMemory, pool: pg.Pool): (key: string, requests: number) => void {
  const { keyPrefix, points: limit } = memory;
  const store = new RateLimiterPostgres({
    // Without the names that it gives its statements, which a pooler may not know.
    storeClient: {
      query: ({ text, values }: pg.QueryConfig) => pool.query(text, values),
    },
    storeType: 'pool',
    tableName: 'RateLimit',
    tableCreated: true,
    keyPrefix,
    points: limit,
    duration: window,
  });
  const portion = Math.ceil(limit / portions);
  const untold = new LRUCache<string, number>({ max: maxUntold });

  /** Adds the points to what all gateways counted, and counts on from there. */
  async function tell(key: string, points: number): Promise<void> {
    const { consumedPoints, msBeforeNext } = await store.penalty(key, points);
    const total = consumedPoints + (untold.get(key) ?? 0);
    const own = await memory.get(key);
    // The clock of the gateway that began to count may be another than ours, by hours.
    const left = Math.min(msBeforeNext / 1_000, window);
    if (total > (own?.consumedPoints ?? 0)) await memory.set(key, total, left);
  }

  return (key, requests) => {
    const count = (untold.get(key) ?? 0) + requests;
    if (count < portion) {
      untold.set(key, count);
      return;
    }
    untold.delete(key);
    tell(key, count).catch(() => {});
  };
}
