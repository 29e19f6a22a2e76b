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

/** The reads of one account since its last write. */
interface AccountReads {
  /** The first part of the keys of its stored responses. */
  readonly id: number;
  /** The reads that are under way, which equal requests share. */
  readonly underway: Map<string, Promise<UpstreamResponse>>;
}

/** The memory, in bytes, that a stored response takes beside its body and its key. Measured roughly. */
const overhead = 2_000;

/** The share of the memory that one response may take. */
const largestShare = 1 / 8;

const maxAccounts = 10_000;

/** The stored responses, with one limit of memory for all accounts. The least recently used is dropped first. */
function createAccountStores(maxBytes: number) {
  const accounts = new LRUCache<number, AccountReads>(atMost(maxAccounts));
  let lastId = 0;
  const stored = new LRUCache<string, StoredResponse>({
    maxSize: maxBytes,
    maxEntrySize: Math.floor(maxBytes * largestShare),
    sizeCalculation: ({ response, policy }, key) =>
      response.body.length + 2 * key.length + overhead + policy.bytes,
  });
  const keyOf = ({ id }: AccountReads, { access, target }: Read) => `${id} ${access.tokenDigest} ${target}`;
  /** Whether there was no write of the account since these reads. */
  const isCurrent = (accountId: number, reads: AccountReads) => accounts.peek(accountId) === reads;
  return {
    isCurrent,
    /** The reads of an account since its last write. */
    of(accountId: number): AccountReads {
      const reads = accounts.get(accountId) ?? { id: ++lastId, underway: new Map() };
      accounts.set(accountId, reads);
      return reads;
    },
    find: (reads: AccountReads, read: Read) => stored.get(keyOf(reads, read)),
    /** Replaces the stored response of a read, or only removes it. After a write, responses of earlier reads are never found. */
    store(reads: AccountReads, read: Read, response: StoredResponse | undefined): void {
      const key = keyOf(reads, read);
      stored.delete(key);
      if (response) stored.set(key, response);
    },
    /**
     * Forgets an account, or all. Its stored responses can no longer be found, and are evicted later. Reads in flight are not stored
     * either.
     */
    drop: (accountId?: number) =>
      void (accountId === undefined ? accounts.clear() : accounts.delete(accountId)),
  };
}

export function createReadCache({ feed, lifetime, maxBytes }: ReadCacheOptions) {
  const accounts = createAccountStores(maxBytes);

  async function load(reads: AccountReads, read: Read): Promise<UpstreamResponse> {
    const sentAt = performance.now();
    const response = await read.send(read.request);
    if (isBusy(response)) return response;
    const policy = policyFor(read.request, response, lifetime, (performance.now() - sentAt) / 1_000);
    accounts.store(reads, read, policy && { response, policy });
    return response;
  }

  return {
    drop: accounts.drop,
    async read(read: Read): Promise<ReadResult> {
      const { request, target } = read;
      const { accountId, tokenDigest, budget } = read.access;
      if (!(await hearAll(feed))) return { given: await read.send(request) };
      const reads = accounts.of(accountId);
      const known = accounts.find(reads, read);
      if (known?.policy.satisfies(request)) return fromStore(known);
      const instead = known?.policy.mayReplaceError(request) ? known : undefined;
      if (instead && budget.delayFor(1) > 0) return fromStore(instead);
      if (request.method !== 'GET') return { given: await read.send(request) };

      const sharedKey = `${tokenDigest} ${target} ${JSON.stringify(request.headers)}`;
      const shared = wantsNewResponse(request) ? undefined : reads.underway.get(sharedKey);
      const loading = shared ?? load(reads, read);
      if (!shared) {
        reads.underway.set(sharedKey, loading);
        const forget = () => reads.underway.get(sharedKey) === loading && reads.underway.delete(sharedKey);
        loading.then(forget, forget);
      }
      const given = await loading;
      // A write may have come in between.
      const mayReplace = instead && accounts.isCurrent(accountId, reads);
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
