/** Rate limits: how often somebody has asked in this minute, and whether that was too often. */

import { LRUCache } from 'lru-cache';
import type pg from 'pg';
// By its own file: the index loads the limiters of all databases there are.
import RateLimiterPostgres from 'rate-limiter-flexible/lib/RateLimiterPostgres.js';
import { atMost } from './lruLimit.ts';

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
  spend(key: string, requests?: number): RateLimitResult;
}

export interface RateLimitResult {
  readonly isExceeded: boolean;
  /** The headers of draft-ietf-httpapi-ratelimit-headers-10, and `Retry-After` for a limit that is exceeded. */
  readonly headers: Readonly<Record<string, string>>;
}

/** In seconds. */
const window = 60;

/** A gateway tells the others what it counted in this many portions of the limit. */
const portions = 20;

/** How many keys may have counts that are smaller than a portion. */
const maxUnreported = 10_000;

const noLimit: RateLimit = {
  spend: () => ({ isExceeded: false, headers: {} }),
};

/**
 * Counts in memory, so that no request waits for the database. Gateways that share one tell it a portion at a time
 * and hear what all of them counted: together they let through at most a portion each more than the limit, and a
 * gateway that cannot reach the database counts for itself.
 */
export function createRateLimit({ name, limit, shared }: RateLimitOptions): RateLimit {
  if (limit === 0) return noLimit;
  const counts = createCounts();
  const note = shared ? shareCounts(counts, { name, limit, pool: shared }) : () => {};
  const policy = `"${name}";q=${limit};w=${window}`;
  return {
    spend(key, requests = 1) {
      const { points, ends } = counts.add(key, requests);
      const isExceeded = points > limit;
      // What is over the limit is not told: whoever asks too often must not make the gateway write.
      if (!isExceeded) note(key, requests);
      const reset = Math.ceil((ends - performance.now()) / 1_000);
      const headers: Record<string, string> = {
        'RateLimit-Policy': policy,
        RateLimit: `"${name}";r=${Math.max(limit - points, 0)};t=${reset}`,
      };
      if (isExceeded) headers['Retry-After'] = String(reset);
      return { isExceeded, headers };
    },
  };
}

/** What was counted in a window, which begins with its first request. */
interface Count {
  points: number;
  /** In milliseconds by a clock that nobody sets. */
  ends: number;
}

/**
 * The counts of this gateway. (The limiter in memory of rate-limiter-flexible, which keeps those of all gateways, does the
 * same by a promise for each request and a timer for each key.)
 */
function createCounts() {
  /** The ones that end first come first, as all windows are as long; those that were heard of from others end sooner. */
  const counts = new Map<string, Count>();

  function current(key: string, now: number): Count {
    const known = counts.get(key);
    if (known && known.ends > now) return known;
    for (const [old, { ends }] of counts) {
      if (ends > now) break;
      counts.delete(old);
    }
    const begun = { points: 0, ends: now + window * 1_000 };
    // Behind all others, where it may have had a place among them.
    counts.delete(key);
    counts.set(key, begun);
    return begun;
  }

  return {
    add(key: string, points: number): Readonly<Count> {
      const count = current(key, performance.now());
      count.points += points;
      return count;
    },
    /** Counts on from what all gateways have counted, if that is more. */
    hear(key: string, points: number, left: number): void {
      const now = performance.now();
      const count = current(key, now);
      if (points <= count.points) return;
      count.points = points;
      count.ends = now + left;
    },
  };
}

interface Sharing {
  readonly name: string;
  readonly limit: number;
  readonly pool: pg.Pool;
}

/** Returns a function that must be told of all that is counted. */
function shareCounts(
  counts: ReturnType<typeof createCounts>,
  { name, limit, pool }: Sharing,
): (key: string, requests: number) => void {
  const store = new RateLimiterPostgres({
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
  const portion = Math.ceil(limit / portions);
  const unreported = new LRUCache<string, number>(atMost(maxUnreported));

  /** Adds the points to what all gateways counted, and counts on from there. */
  async function tell(key: string, points: number): Promise<void> {
    const { consumedPoints, msBeforeNext } = await store.penalty(key, points);
    // The clock of the gateway that began to count may be another than ours, by hours.
    counts.hear(key, consumedPoints + (unreported.get(key) ?? 0), Math.min(msBeforeNext, window * 1_000));
  }

  return (key, requests) => {
    const count = (unreported.get(key) ?? 0) + requests;
    if (count < portion) {
      unreported.set(key, count);
      return;
    }
    unreported.delete(key);
    tell(key, count).catch(() => {});
  };
}
