/**
 * The response cache: responses of reads, per viewer, until data of the viewer changes.
 *
 * A response is stored under the version of the viewer's data at which its computation began, and is valid only while that is
 * still the version. So a response that is older than a change is never served. A cached response is also not served before every
 * change that the viewer may have seen has been announced. A maximum age limits the effect of a missed announcement. May be
 * switched off by `RESPONSE_CACHE_MB=0`.
 */

import { LRUCache } from 'lru-cache';
import type { ChangeFeed } from '../database/feed/changeFeed.ts';
import { resultWithin } from '../database/waiting.ts';
import { type HttpResponse, withOwnMemory } from './response.ts';
import type { Computed } from './task.ts';

export type ResponseCache = ReturnType<typeof createResponseCache>;

interface ResponseCacheOptions {
  /** How much memory the responses may take; 0 caches none. */
  readonly maxBytes: number;
  /** How long, in seconds, a response is cached at most. */
  readonly maxAge: number;
}

export function createResponseCache(feed: ChangeFeed, options: ResponseCacheOptions) {
  const versions = createVersions(feed);
  /** `shared` counts misses that shared a computation, `overtaken` those that were not stored because data changed meanwhile. */
  const counters = { hits: 0, misses: 0, shared: 0, overtaken: 0 };
  const stored = createResponseStore(options);
  const runningOf = createShared();
  const { versionOf, noteRead } = versions;

  function find(viewerId: number, request: string): HttpResponse | undefined {
    const entry = stored.get(`${viewerId} ${request}`);
    return entry && entry.version === versionOf(viewerId) ? entry.response : undefined;
  }

  function count(found: HttpResponse | undefined): HttpResponse | undefined {
    if (found) counters.hits++;
    return found;
  }

  return {
    ...versions,
    counters,
    /** The number of stored responses, outdated ones included, and the memory that they take. */
    usage: stored.usage,

    /** The cached response, if it is still valid. A promise if the cache has to wait for announcements to know. */
    get(viewerId: number, request: string): HttpResponse | undefined | Promise<HttpResponse | undefined> {
      const found = find(viewerId, request);
      if (!found || versions.isCaughtUp(viewerId)) return count(found);
      return versions
        .catchUp(viewerId)
        .then((isCaughtUp) => count(isCaughtUp ? find(viewerId, request) : undefined));
    },

    /**
     * Computes the response of a read, or shares the computation of an equal request. The response is stored with its
     * forms if it is cacheable and no data of the viewer has changed meanwhile.
     * @param sharer whose requests share it. A request that waits for that of another token would get its response although its own
     * token has ended meanwhile.
     */
    async compute(
      viewerId: number,
      request: string,
      compute: () => Promise<Computed>,
      sharer: object = stored,
    ): Promise<HttpResponse> {
      counters.misses++;
      const run = () => compute().finally(() => noteRead(viewerId));
      const version = versionOf(viewerId);
      if (options.maxBytes === 0 || version === undefined) return (await run()).response;

      const key = `${viewerId} ${request}`;
      // The key has the version and the number of the last read: a request that begins after a change, or after the viewer may
      // have seen one, must not share a computation that began before it.
      const shareKey = `${version} ${versions.lastReadOf(viewerId)} ${key}`;
      const running = runningOf(sharer);
      const shared = running.get(shareKey);
      if (shared) {
        counters.shared++;
        return shared;
      }
      const computing = run()
        .then(({ response, isCacheable }) => {
          if (!isCacheable) return response;
          if (versionOf(viewerId) === version) return stored.add(key, version, response);
          counters.overtaken++;
          return response;
        })
        .finally(() => running.delete(shareKey));
      running.set(shareKey, computing);
      return computing;
    },
  };
}

/** Makes a function that gives the running computations that the requests of a sharer may share. */
function createShared() {
  const all = new WeakMap<object, Map<string, Promise<HttpResponse>>>();
  return (sharer: object) => {
    const known = all.get(sharer);
    if (known) return known;
    const running = new Map<string, Promise<HttpResponse>>();
    all.set(sharer, running);
    return running;
  };
}

interface CachedResponse {
  readonly version: number;
  readonly response: HttpResponse;
}

/** The memory, in bytes, that an entry takes beside its texts. Measured roughly. */
const overhead = 1_000;

/** The memory of a body with its compressed form, as a multiple of the body. JSON is compressed to a tenth, or a quarter at worst. */
const withForms = 1.5;

/** The stored responses, within a bound. Those that are asked for again are evicted last, however many another viewer has. */
function createResponseStore({ maxBytes, maxAge }: ResponseCacheOptions) {
  const entries = new LRUCache<string, CachedResponse>({
    maxSize: Math.max(maxBytes, 1),
    sizeCalculation: ({ response }, key) =>
      Math.ceil(response.body.length * withForms) + 2 * key.length + overhead,
    ttl: maxAge * 1_000,
    // Reads the clock once a second, and not for each response.
    ttlResolution: 1_000,
  });
  return {
    usage: () => ({ entries: entries.size, bytes: entries.calculatedSize }),
    get: (key: string) => entries.get(key),
    /** @returns the stored response, which also holds the compressed form that is made of it. */
    add(key: string, version: number, given: HttpResponse): HttpResponse {
      const response = { ...given, body: withOwnMemory(given.body), forms: {} };
      // An entry that is larger than all of the memory is not stored, and the entry that it would replace is dropped.
      entries.set(key, { version, response });
      return response;
    },
  };
}

/** How long, in milliseconds, a request waits for announcements. */
export const longestAnnouncementWait = 250;

/** After a wait that timed out, no request waits for this many milliseconds, unless an announcement arrives. */
const pauseAfterTimeout = 1_000;

/** How many viewers are remembered. When there are more, all are forgotten. */
export const maxViewers = 100_000;

/** Numbers of viewers that only grow. */
function createNumbers() {
  const numbers = new Map<number, number>();
  let latest = 0;
  /** The number of every viewer who has none of their own. */
  let floor = 0;

  function raiseAll(): void {
    numbers.clear();
    floor = ++latest;
  }

  return {
    latest: () => latest,
    of: (viewerId: number) => numbers.get(viewerId) ?? floor,
    raise(viewerId: number): void {
      if (numbers.size >= maxViewers) raiseAll();
      numbers.set(viewerId, ++latest);
    },
    raiseAll,
  };
}

/**
 * The version of each viewer's data: a number that every announced change, and every write through this process, raises. A result
 * from a viewer's data may be used again while three things are true: the version is the same, announcements are proved to arrive,
 * and every change that the viewer may have seen has been announced. Without versions nothing can be cached.
 */
function createVersions(feed: ChangeFeed) {
  const { catchUp } = feed;
  const versions = createNumbers();
  feed.subscribe((change) => (change.kind === 'user' ? versions.raise(change.userId) : versions.raiseAll()));
  // Cached responses must not contradict what a viewer has read. A change can be read from the database a moment before it is
  // announced. A viewer who has seen it must not get a response that was cached before it.
  /** The last read of each viewer. Reads are numbered in their order. */
  const reads = createNumbers();
  let caughtUpUntil = 0;
  let lastFailure = Number.NEGATIVE_INFINITY;

  async function awaitAnnouncements(until: number): Promise<void> {
    if (!(await catchUp?.())) return;
    caughtUpUntil = Math.max(caughtUpUntil, until);
    lastFailure = Number.NEGATIVE_INFINITY;
  }

  return {
    /** The version; undefined while no result from the viewer's data may be cached. */
    versionOf: (viewerId: number) => (feed.listening ? versions.of(viewerId) : undefined),
    /** Must be called after a write through this process, before it is acknowledged. */
    invalidate: versions.raise,
    noteRead(viewerId: number): void {
      if (catchUp) reads.raise(viewerId);
    },
    lastReadOf: reads.of,
    /** Whether every change that the viewer's reads may have shown has been announced to this process. */
    isCaughtUp: (viewerId: number) => reads.of(viewerId) <= caughtUpUntil,
    /** Waits until that is so. Returns false if it takes too long. */
    async catchUp(viewerId: number): Promise<boolean> {
      const needed = reads.of(viewerId);
      if (performance.now() - lastFailure < pauseAfterTimeout) return false;
      await resultWithin(longestAnnouncementWait, awaitAnnouncements(reads.latest()));
      const isCaughtUp = needed <= caughtUpUntil;
      if (!isCaughtUp) lastFailure = performance.now();
      return isCaughtUp;
    },
  };
}
