/** Responses in memory, each with the compressed forms that it is asked for in, within a bound. */

import { LRUCache } from 'lru-cache';
import type { Forms } from './compression.ts';
import { type Form, withOwnMemory } from './contentCoding.ts';
import type { HttpResponse } from './response.ts';

interface Entry {
  readonly viewerId: number;
  readonly version: number;
  readonly response: HttpResponse;
  /** The memory that it takes, its compressed forms included. */
  readonly bytes: number;
}

/** The memory, in bytes, that an entry and each form of it take beside their texts. Measured roughly. */
const overhead = 1_000;
const overheadOfForm = 500;

/** The share of the memory that the responses of one viewer may take. Beyond it the viewer's own oldest responses are evicted. */
const largestShare = 1 / 4;

export interface StoredResponsesOptions {
  /** How much memory the responses may take; 0 caches none. */
  readonly maxBytes: number;
  /** How long a response is cached, in seconds, whatever the feed says. */
  readonly maxAge: number;
}

export interface StoredResponses {
  /** The number of stored responses, those that are no longer valid included, and the memory that they take. */
  usage(): { readonly entries: number; readonly bytes: number };
  get(key: string): Pick<Entry, 'version' | 'response'> | undefined;
  /** @returns the stored response, which also holds each compressed form that is made of it. */
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
  /** The keys of each viewer's entries, the oldest first. */
  const owned = new Map<number, { readonly keys: Set<string>; bytes: number }>();

  function add(key: string, entry: Entry, options?: { noUpdateTTL: true }): void {
    const { bytes } = entry;
    // An entry that is larger than all of the memory is not stored, and the entry that it would replace is dropped.
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
      const body = withOwnMemory(response.body);
      const forms = createForms((form) => {
        // The entry may have been replaced or evicted since.
        if (entries.peek(key, { allowStale: true }) !== entry) return;
        const more = form.body === body ? overheadOfForm : form.body.length + overheadOfForm;
        entry = { ...entry, bytes: entry.bytes + more };
        // The new form does not make the entry younger.
        add(key, entry, { noUpdateTTL: true });
      });
      const bytes = body.length + 2 * key.length + overhead;
      let entry: Entry = { viewerId, version, response: { ...response, body, forms }, bytes };
      add(key, entry);
      return entry.response;
    },
    /** Must be called for each entry that is evicted or replaced. */
    remove(key: string, { viewerId, bytes }: Entry): void {
      const own = owned.get(viewerId);
      if (!own?.keys.delete(key)) return;
      own.bytes -= bytes;
      if (own.keys.size === 0) owned.delete(viewerId);
    },
  };
}
