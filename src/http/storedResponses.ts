/** Responses in memory, each with the compressed forms that it is asked for in, within a bound. */

import { LRUCache } from 'lru-cache';
import type { Forms } from './compression.ts';
import { detachedBytes, type Form } from './contentCoding.ts';
import type { HttpResponse } from './response.ts';

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

export interface StoredResponsesOptions {
  /** How much memory the responses may take; 0 caches none. */
  readonly maxBytes: number;
  /** How long a response is cached, in seconds, whatever the feed says. */
  readonly maxAge: number;
}

export interface StoredResponses {
  /** How many responses there are, those that no longer hold included, and what they take. */
  usage(): { readonly entries: number; readonly bytes: number };
  get(key: string): Pick<Entry, 'version' | 'response'> | undefined;
  /** @returns the response as it is stored, with each form that is made of it. */
  store(key: string, entry: Omit<Entry, 'bytes'>): HttpResponse;
}

export function createStoredResponses({ maxBytes, maxAge }: StoredResponsesOptions): StoredResponses {
  const entries: LRUCache<string, Entry> = new LRUCache<string, Entry>({
    maxSize: Math.max(maxBytes, 1),
    dispose: (entry, key) => shares.remove(key, entry),
    ttl: maxAge * 1_000,
    // Reads the clock once a second, and not for each response.
    ttlResolution: 1_000,
  });
  const shares = createShares(entries, Math.max(maxBytes * largestShare, 1));
  return {
    usage: () => ({ entries: entries.size, bytes: entries.calculatedSize }),
    get: (key) => entries.get(key),
    store: shares.store,
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
