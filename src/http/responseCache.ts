/**
 * Finished answers of reads, kept per viewer until something of the viewer's changes.
 *
 * Everything hangs on one number per viewer, their version, which every announced change and every write through
 * this process raises. An answer is stored under the version at which its computation began, and holds only
 * while that is still the version. So an answer that was overtaken by a change is never served, and while the
 * feed is down nothing is. No answer is kept for longer than a while, so that whatever was not announced heals.
 */

import { LRUCache } from 'lru-cache';
import type { HttpResponse } from './response.ts';
import type { ChangeFeed } from '../database/changeFeed.ts';

export interface ResponseCache {
  readonly counters: Readonly<Counters>;
  /** How many answers there are, those that no longer hold included, and what they take. */
  usage(): { readonly entries: number; readonly bytes: number };
  /** The kept answer, if it still holds. */
  find(viewerId: number, request: string): HttpResponse | undefined;
  /**
   * The answer of a read: computed, or shared with an identical request that is being computed. It is kept if
   * `compute` says so and nothing of the viewer's changed in the meantime.
   */
  compute(viewerId: number, request: string, compute: () => Promise<Computed>): Promise<HttpResponse>;
  /** Must be called after a write through this process, before it is acknowledged. */
  changed(viewerId: number): void;
}

export interface Computed {
  readonly response: HttpResponse;
  /** Whether the answer may be kept: errors may not. */
  readonly keep: boolean;
}

interface Counters {
  hits: number;
  misses: number;
  /** Misses that were answered by somebody else's computation. */
  shared: number;
  /** Answers that were not stored, because something changed while they were computed. */
  refused: number;
}

interface Entry {
  readonly version: number;
  readonly response: HttpResponse;
}

/** What an entry costs beside its texts, in bytes: measured roughly, so that the bound is honest. */
const overhead = 1_000;

/**
 * The answer with memory of its own. Node cuts small buffers out of pieces of several kilobytes, all of which a slice
 * would keep for as long as it is kept.
 */
function detached(response: HttpResponse): HttpResponse {
  const { body } = response;
  if (body.buffer.byteLength === body.length) return response;
  const own = Buffer.allocUnsafeSlow(body.length);
  own.set(body);
  return { ...response, body: own };
}

export interface ResponseCacheOptions {
  /** How much memory the answers may take; 0 keeps none. */
  readonly maxBytes: number;
  /** How long an answer is kept, in seconds, whatever the feed says. */
  readonly maxAge: number;
}

export function createResponseCache(feed: ChangeFeed, { maxBytes, maxAge }: ResponseCacheOptions): ResponseCache {
  const counters: Counters = { hits: 0, misses: 0, shared: 0, refused: 0 };
  const entries = new LRUCache<string, Entry>({
    maxSize: Math.max(maxBytes, 1),
    ttl: maxAge * 1_000,
    // Reads the clock once a second, and not for each answer.
    ttlResolution: 1_000,
    sizeCalculation: ({ response }, key) => response.body.length + 2 * key.length + overhead,
  });
  const underway = new Map<string, Promise<HttpResponse>>();

  let clock = 0;
  /** The version of every viewer who has none of their own. */
  let floor = 0;
  const versions = new Map<number, number>();
  const versionOf = (viewerId: number) => versions.get(viewerId) ?? floor;
  const changed = (viewerId: number) => {
    versions.set(viewerId, ++clock);
  };
  feed.subscribe((change) => {
    if (change.kind === 'user') {
      changed(change.userId);
    } else {
      versions.clear();
      floor = ++clock;
    }
  });

  return {
    counters,
    usage: () => ({ entries: entries.size, bytes: entries.calculatedSize }),
    changed,

    find(viewerId, request) {
      const entry = entries.get(`${viewerId} ${request}`);
      if (!entry || !feed.listening || entry.version !== versionOf(viewerId)) return undefined;
      counters.hits++;
      return entry.response;
    },

    compute(viewerId, request, compute) {
      counters.misses++;
      if (maxBytes === 0 || !feed.listening) return compute().then(({ response }) => response);

      // The version is part of the key: a request that begins after a change must not share what began before.
      const version = versionOf(viewerId);
      const key = `${viewerId} ${request}`;
      const sharedKey = `${version} ${key}`;
      const shared = underway.get(sharedKey);
      if (shared) {
        counters.shared++;
        return shared;
      }
      const computing = compute()
        .then(({ response, keep }) => {
          if (keep && feed.listening && versionOf(viewerId) === version)
            entries.set(key, { version, response: detached(response) });
          else if (keep) counters.refused++;
          return response;
        })
        .finally(() => underway.delete(sharedKey));
      underway.set(sharedKey, computing);
      return computing;
    },
  };
}
