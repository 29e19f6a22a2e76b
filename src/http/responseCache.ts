/**
 * The response cache: responses of reads, per viewer, until something of the viewer's changes.
 *
 * Everything hangs on one number per viewer, their version, which every announced change and every write through
 * this process raises. A response is stored under the version at which its computation began, and holds only
 * while that is still the version. So a response that was overtaken by a change is never served, and while the
 * change feed is down none is, nor while a change of the viewer's was announced that snapshots may not see yet: what is
 * read then may be from before it, and is not stored under any version. None is cached for longer than a while, so that whatever was not announced heals.
 */

import { LRUCache } from 'lru-cache';
import type { ChangeFeed } from '../database/feed/changeFeed.ts';
import type { Forms } from './compression.ts';
import { detachedBytes, type Form } from './contentCoding.ts';
import type { HttpResponse } from './response.ts';
import type { Computed } from './task.ts';

export interface ResponseCache {
  readonly counters: Readonly<Counters>;
  /** How many responses there are, those that no longer hold included, and what they take. */
  usage(): { readonly entries: number; readonly bytes: number };
  /** The cached response, if it still holds. */
  get(viewerId: number, request: string): HttpResponse | undefined;
  /**
   * The response of a read: computed, or shared with an equal request that is being computed. It is stored if it is
   * cacheable and nothing of the viewer's changed in the meantime, with the compressed forms that it is asked for in.
   */
  compute(viewerId: number, request: string, compute: () => Promise<Computed>): Promise<HttpResponse>;
  /** The version of a viewer's data, or undefined while what is read of it may not be remembered. */
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

interface Entry {
  readonly viewerId: number;
  readonly version: number;
  readonly response: HttpResponse;
  /** What it takes, its compressed forms included. */
  readonly bytes: number;
}

/** What an entry, and what each form of it, costs beside its texts, in bytes: measured roughly, so that the bound is honest. */
const overhead = 1_000;
const overheadOfForm = 500;

/** How much of the memory the responses of one viewer may take: whoever asks for a lot lets go of their own first. */
const largestShare = 1 / 4;

export interface ResponseCacheOptions {
  /** How much memory the responses may take; 0 caches none. */
  readonly maxBytes: number;
  /** How long a response is cached, in seconds, whatever the feed says. */
  readonly maxAge: number;
}

export function createResponseCache(
  feed: ChangeFeed,
  { maxBytes, maxAge }: ResponseCacheOptions,
): ResponseCache {
  const counters: Counters = { hits: 0, misses: 0, shared: 0, overtaken: 0 };
  const entries: LRUCache<string, Entry> = new LRUCache<string, Entry>({
    maxSize: Math.max(maxBytes, 1),
    dispose: (entry, key) => shares.remove(key, entry),
    ttl: maxAge * 1_000,
    // Reads the clock once a second, and not for each response.
    ttlResolution: 1_000,
  });
  const underway = new Map<string, Promise<HttpResponse>>();
  const shares = createShares(entries, Math.max(maxBytes * largestShare, 1));

  const versions = followVersions(feed);

  return {
    counters,
    usage: () => ({ entries: entries.size, bytes: entries.calculatedSize }),
    versionOf: (viewerId) => (feed.trusts(viewerId) ? versions.of(viewerId) : undefined),
    invalidate: versions.raise,

    get(viewerId, request) {
      const entry = entries.get(`${viewerId} ${request}`);
      if (!entry || !feed.trusts(viewerId) || entry.version !== versions.of(viewerId)) return undefined;
      counters.hits++;
      return entry.response;
    },

    compute(viewerId, request, compute) {
      counters.misses++;
      if (maxBytes === 0 || !feed.trusts(viewerId)) return compute().then(({ response }) => response);

      // The version is part of the key: a request that begins after a change must not share what began before.
      const version = versions.of(viewerId);
      const key = `${viewerId} ${request}`;
      const sharedKey = `${version} ${key}`;
      const shared = underway.get(sharedKey);
      if (shared) {
        counters.shared++;
        return shared;
      }
      const computing = compute()
        .then(({ response, isCacheable }) => {
          if (!isCacheable) return response;
          if (feed.trusts(viewerId) && versions.of(viewerId) === version)
            return shares.store(key, { viewerId, version, response });
          counters.overtaken++;
          return response;
        })
        .finally(() => underway.delete(sharedKey));
      underway.set(sharedKey, computing);
      return computing;
    },
  };
}

/** @param onMade told of each form, once it is there. */
function createForms(onMade: (form: HttpResponse) => void): Forms {
  const forms = new Map<Form, HttpResponse | Promise<HttpResponse>>();
  return {
    get: (form) => forms.get(form),
    delete: (form) => forms.delete(form),
    set(form, response) {
      forms.set(form, response);
      if (!(response instanceof Promise)) onMade(response);
    },
  };
}

/** Stores entries so that no viewer has more than their share of the memory. */
function createShares(entries: LRUCache<string, Entry>, most: number) {
  /** What each viewer has, the oldest first. */
  const owned = new Map<number, { readonly keys: Set<string>; bytes: number }>();

  function add(key: string, entry: Entry, options?: { noUpdateTTL: true }): void {
    const { bytes } = entry;
    // One that is larger than all of the memory is not stored, nor is what was in its place any longer.
    entries.set(key, entry, { ...options, size: bytes });
    if (bytes > entries.maxSize) return;
    const own = owned.get(entry.viewerId) ?? { keys: new Set(), bytes: 0 };
    owned.set(entry.viewerId, own);
    own.keys.add(key);
    own.bytes += bytes;
    for (const oldest of own.keys) {
      if (own.bytes <= most || oldest === key) break;
      entries.delete(oldest);
    }
  }

  return {
    /** @returns the response as it is stored, with each form that is made of it. */
    store(key: string, { viewerId, version, response }: Omit<Entry, 'bytes'>): HttpResponse {
      const body = detachedBytes(response.body);
      const forms = createForms((form) => {
        // Another may be in its place by now, or none.
        if (entries.peek(key, { allowStale: true }) !== entry) return;
        const more = form.body === body ? overheadOfForm : form.body.length + overheadOfForm;
        entry = { ...entry, bytes: entry.bytes + more };
        // It is no younger for it.
        add(key, entry, { noUpdateTTL: true });
      });
      const bytes = body.length + 2 * key.length + overhead;
      let entry: Entry = { viewerId, version, response: { ...response, body, forms }, bytes };
      add(key, entry);
      return entry.response;
    },
    /** Must be told of each entry that is let go of, or replaced. */
    remove(key: string, { viewerId, bytes }: Entry): void {
      const own = owned.get(viewerId);
      if (!own?.keys.delete(key)) return;
      own.bytes -= bytes;
      if (own.keys.size === 0) owned.delete(viewerId);
    },
  };
}

/** How many viewers have a version of their own: when more have, all of them get a new one. */
const maxVersions = 100_000;

/** The version of each viewer's data: a number that every change raises. */
function followVersions(feed: ChangeFeed) {
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
