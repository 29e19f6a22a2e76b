/**
 * The response cache: responses of reads, per viewer, until something of the viewer's changes.
 *
 * Each viewer has a version, a number that every announced change and every write through this process raises. A
 * response is stored under the version at which its computation began, and is valid only while that is still the version.
 * So a response that a change has overtaken is never served. While the feed is down, or a change of the viewer's is
 * announced that snapshots may not show yet, nothing is served or stored. Nothing is served either before every change
 * that the viewer may have seen has been announced. A maximum age limits how long a missed announcement can matter.
 */

import type { ChangeFeed } from '../database/feed/changeFeed.ts';
import { createReadBarrier } from './readBarrier.ts';
import type { HttpResponse } from './response.ts';
import { createStoredResponses, type StoredResponsesOptions } from './storedResponses.ts';
import type { Computed } from './task.ts';

export interface ResponseCache {
  readonly counters: Readonly<Counters>;
  /** The number of stored responses, those that are no longer valid included, and the memory that they take. */
  usage(): { readonly entries: number; readonly bytes: number };
  /** The cached response, if it is still valid. A promise if the cache has to wait for announcements to know. */
  get(viewerId: number, request: string): HttpResponse | undefined | Promise<HttpResponse | undefined>;
  /**
   * The response of a read: computed, or shared with an equal request that is being computed. It is stored if it is
   * cacheable and nothing of the viewer's changed in the meantime, with the compressed forms that it is asked for in.
   */
  compute(viewerId: number, request: string, compute: () => Promise<Computed>): Promise<HttpResponse>;
  /** Must be called after a read for the viewer that did not go through `compute`. */
  noteRead(viewerId: number): void;
  /** Raises the version of the viewer's data if the viewer may have seen newer data than the version stands for. */
  settleVersion(viewerId: number): Promise<void>;
  /** The version of a viewer's data, or undefined while responses made from it may not be cached. */
  versionOf(viewerId: number): number | undefined;
  /** Must be called after a write through this process, before it is acknowledged. */
  invalidate(viewerId: number): void;
}

interface Counters {
  hits: number;
  misses: number;
  /** Misses that shared the computation of another request. */
  shared: number;
  /** Responses that were not stored, because something changed while they were computed. */
  overtaken: number;
}

export function createResponseCache(feed: ChangeFeed, options: StoredResponsesOptions): ResponseCache {
  const counters: Counters = { hits: 0, misses: 0, shared: 0, overtaken: 0 };
  const stored = createStoredResponses(options);
  const share = createSharing(counters);
  const count = countsHits(counters);
  const versions = trackVersions(feed);
  const reads = createReadBarrier(feed);

  function find(viewerId: number, request: string): HttpResponse | undefined {
    const entry = stored.get(`${viewerId} ${request}`);
    const holds = entry && feed.mayCache(viewerId) && entry.version === versions.of(viewerId);
    return holds ? entry.response : undefined;
  }

  return {
    counters,
    usage: stored.usage,
    versionOf: (viewerId) => (feed.mayCache(viewerId) ? versions.of(viewerId) : undefined),
    invalidate: versions.raise,
    noteRead: reads.noteRead,

    get(viewerId, request) {
      if (options.maxBytes === 0) return undefined;
      const found = find(viewerId, request);
      if (!found || reads.isCaughtUp(viewerId)) return count(found);
      return reads
        .catchUp(viewerId)
        .then((isCaughtUp) => count(isCaughtUp ? find(viewerId, request) : undefined));
    },

    async settleVersion(viewerId) {
      if (!reads.isCaughtUp(viewerId) && !(await reads.catchUp(viewerId))) versions.raise(viewerId);
    },

    compute(viewerId, request, compute) {
      counters.misses++;
      const run = () => compute().finally(() => reads.noteRead(viewerId));
      if (options.maxBytes === 0 || !feed.mayCache(viewerId)) return run().then(({ response }) => response);

      // The key has the version and the number of the last read: a request that begins after a change, or after the viewer may
      // have seen one, must not share a computation that began before.
      const version = versions.of(viewerId);
      const key = `${viewerId} ${request}`;
      const sharedKey = `${version} ${reads.lastReadOf(viewerId)} ${key}`;
      return share(sharedKey, () =>
        run().then(({ response, isCacheable }) => {
          if (!isCacheable) return response;
          if (feed.mayCache(viewerId) && versions.of(viewerId) === version)
            return stored.store(key, { viewerId, version, response });
          counters.overtaken++;
          return response;
        }),
      );
    },
  };
}

/** Has equal computations run once: whoever comes while one runs gets its result. */
function createSharing(counters: Counters) {
  const running = new Map<string, Promise<HttpResponse>>();
  return (key: string, run: () => Promise<HttpResponse>): Promise<HttpResponse> => {
    const shared = running.get(key);
    if (shared) {
      counters.shared++;
      return shared;
    }
    const computing = run().finally(() => running.delete(key));
    running.set(key, computing);
    return computing;
  };
}

const countsHits = (counters: Counters) => (found: HttpResponse | undefined) => {
  if (found) counters.hits++;
  return found;
};

/** At most this many viewers have a version of their own. When the map is full, it is cleared, and all viewers get a new version. */
const maxVersions = 100_000;

/** The version of each viewer's data: a number that every change raises. */
function trackVersions(feed: ChangeFeed) {
  let clock = 0;
  /** The version of every viewer who has none of their own. */
  let floor = 0;
  const versions = new Map<number, number>();
  const raiseAll = () => {
    versions.clear();
    floor = ++clock;
  };
  const raise = (viewerId: number) => {
    if (versions.size >= maxVersions) raiseAll();
    versions.set(viewerId, ++clock);
  };
  feed.subscribe((change) => (change.kind === 'user' ? raise(change.userId) : raiseAll()));
  return { of: (viewerId: number) => versions.get(viewerId) ?? floor, raise };
}
