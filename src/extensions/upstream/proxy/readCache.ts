/** The private cache of reads: responses of the upstream, stored by account, token and URL as sent (RFC 9111). */

import { LRUCache } from 'lru-cache';
import type { ChangeFeed } from '../../../database/feed/changeFeed.ts';
import { resultWithin } from '../../../database/waiting.ts';
import { atMost } from '../../../http/lruLimit.ts';
import { longestAnnouncementWait } from '../../../http/responseCache.ts';
import type { UpstreamRequest, UpstreamResponse } from '../client/http.ts';
import { isBusy } from '../client/upstream.ts';
import type { UpstreamAccess } from '../mirror/access.ts';
import { type Policy, policyFor, wantsNewResponse } from './policy.ts';

export interface Read {
  readonly access: Pick<UpstreamAccess, 'accountId' | 'tokenDigest' | 'budget'>;
  /** As the client has sent it. */
  readonly target: string;
  /** Must not be conditional. */
  readonly request: UpstreamRequest;
  send(request: UpstreamRequest): Promise<UpstreamResponse>;
}

export interface ReadResult {
  readonly given: UpstreamResponse;
  /** In seconds; undefined for a response that was not stored. */
  readonly age?: number;
}

export type ReadCache = ReturnType<typeof createReadCache>;

export interface ReadCacheOptions {
  readonly feed: ChangeFeed;
  /** How many seconds a response is fresh if the upstream does not state it. */
  readonly lifetime: number;
  /** How much memory the stored responses may take, in bytes. */
  readonly maxBytes: number;
}

interface StoredResponse {
  readonly response: UpstreamResponse;
  readonly policy: Policy;
}

/** The memory, in bytes, that a stored response takes beside its body and its key. Measured roughly. */
const overhead = 2_000;

/** The share of the memory that one response may take. */
const largestShare = 1 / 8;

const maxAccounts = 10_000;

export function createReadCache({ feed, lifetime, maxBytes }: ReadCacheOptions) {
  /** A number for each account, and another one after each write: responses of reads that began before are never found. */
  const generations = new LRUCache<number, number>(atMost(maxAccounts));
  let lastGeneration = 0;
  /** With one limit of memory for all accounts. The least recently used is dropped first. */
  const stored = new LRUCache<string, StoredResponse>({
    maxSize: maxBytes,
    maxEntrySize: Math.floor(maxBytes * largestShare),
    sizeCalculation: ({ response, policy }, key) =>
      response.body.length + 2 * key.length + overhead + policy.bytes,
  });
  /** The reads that are under way, which equal requests share. */
  const underway = new Map<string, Promise<UpstreamResponse>>();

  function generationOf(accountId: number): number {
    const generation = generations.get(accountId) ?? ++lastGeneration;
    generations.set(accountId, generation);
    return generation;
  }

  async function load({ request, send }: Read, key: string): Promise<UpstreamResponse> {
    const sentAt = performance.now();
    const response = await send(request);
    if (isBusy(response)) return response;
    const policy = policyFor(request, response, lifetime, (performance.now() - sentAt) / 1_000);
    stored.delete(key);
    if (policy) stored.set(key, { response, policy });
    return response;
  }

  return {
    /** Forgets what is stored of an account, or of all. */
    drop: (accountId?: number) =>
      void (accountId === undefined ? generations.clear() : generations.delete(accountId)),
    async read(read: Read): Promise<ReadResult> {
      const { request, target } = read;
      const { accountId, tokenDigest, budget } = read.access;
      if (!(await hearAll(feed))) return { given: await read.send(request) };
      const generation = generationOf(accountId);
      const key = `${generation} ${tokenDigest} ${target}`;
      const known = stored.get(key);
      if (known?.policy.satisfies(request)) return fromStore(known);
      const instead = known?.policy.mayReplaceError(request) ? known : undefined;
      if (instead && budget.delayFor(1) > 0) return fromStore(instead);
      if (request.method !== 'GET') return { given: await read.send(request) };

      const sharedKey = `${key} ${JSON.stringify(request.headers)}`;
      const shared = wantsNewResponse(request) ? undefined : underway.get(sharedKey);
      const loading = shared ?? load(read, key);
      if (!shared) {
        underway.set(sharedKey, loading);
        const forget = () => underway.get(sharedKey) === loading && underway.delete(sharedKey);
        loading.then(forget, forget);
      }
      const given = await loading;
      // A write may have come in between.
      const mayReplace = instead && generations.peek(accountId) === generation;
      return mayReplace && isBusy(given) ? fromStore(instead) : { given };
    },
  };
}

const fromStore = ({ response, policy }: StoredResponse): ReadResult => ({
  given: response,
  age: Math.floor(policy.age()),
});

/**
 * Waits until this gateway has received every announcement that was made before the call: any gateway may have acknowledged a write
 * before it. Returns false if it takes too long.
 */
async function hearAll(feed: ChangeFeed): Promise<boolean> {
  if (!feed.listening) return false;
  // No other process has the embedded engine open.
  if (!feed.catchUp) return true;
  return (await resultWithin(longestAnnouncementWait, feed.catchUp())) === true && feed.listening;
}
