/**
 * The private cache of reads: responses of the upstream, stored by account and URL as sent (RFC 9111). A token may become that of
 * another account before a read. So a response that one token has read is sent to another token only when the upstream has
 * confirmed, after the read, that the first token is the account's.
 */

import { LRUCache } from 'lru-cache';
import type { ChangeFeed } from '../../../database/feed/changeFeed.ts';
import { resultWithin } from '../../../database/waiting.ts';
import { atMost } from '../../../http/lruLimit.ts';
import { longestAnnouncementWait } from '../../../http/responseCache.ts';
import type { UpstreamRequest, UpstreamResponse } from '../client/http.ts';
import { isBusy } from '../client/upstream.ts';
import type { UpstreamAccess } from '../mirror/service.ts';
import { type Policy, policyFor, wantsNewResponse } from './policy.ts';

export interface Read {
  readonly access: Pick<UpstreamAccess, 'accountId' | 'reader' | 'budget'>;
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
  readonly reader: UpstreamAccess['reader'];
  /** By `performance.now()`. */
  readonly receivedAt: number;
  /** Whether the upstream has confirmed since then that the token is the account's. */
  isConfirmed: boolean;
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
  const keyOf = ({ id }: AccountReads, { target }: Read) => `${id} ${target}`;
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

  async function load(reads: AccountReads, read: Read, known: StoredResponse | undefined) {
    const { request } = read;
    const { reader } = read.access;
    const validators = known?.policy.validatorsFor(request);
    const sentAt = performance.now();
    const given = await read.send({ ...request, headers: { ...request.headers, ...validators } });
    if (isBusy(given)) return given;
    const response = given.status === 304 && known ? renewed(known.response, given) : given;
    const receivedAt = performance.now();
    const policy = policyFor(request, response, lifetime, (receivedAt - sentAt) / 1_000);
    const stored = policy && { response, policy, reader, receivedAt, isConfirmed: false };
    accounts.store(reads, read, stored);
    return response;
  }

  /** The stored response for a read: that of the read's own token, or that of another token if it may be sent to all. */
  async function find(reads: AccountReads, read: Read): Promise<StoredResponse | undefined> {
    const found = accounts.find(reads, read);
    if (!found || found.reader.id === read.access.reader.id) return found;
    if (!found.policy.isForAllTokens) return undefined;
    if (!found.isConfirmed && found.policy.satisfies(read.request))
      found.isConfirmed = await found.reader.confirmSince(found.receivedAt);
    return found.isConfirmed ? found : undefined;
  }

  return {
    drop: accounts.drop,
    async read(read: Read): Promise<ReadResult> {
      const { request, target } = read;
      const { accountId, reader, budget } = read.access;
      if (!(await hearAll(feed))) return { given: await read.send(request) };
      const reads = accounts.of(accountId);
      const found = await find(reads, read);
      // A write may have come in between.
      const known = found && accounts.isCurrent(accountId, reads) ? found : undefined;
      if (known?.policy.satisfies(request)) return fromStore(known);
      const instead = known?.policy.mayReplaceError(request) ? known : undefined;
      if (instead && budget.delayFor(1) > 0) return fromStore(instead);
      if (request.method !== 'GET') return { given: await read.send(request) };

      const sharedKey = `${reader.id} ${target} ${JSON.stringify(request.headers)}`;
      const shared = wantsNewResponse(request) ? undefined : reads.underway.get(sharedKey);
      const loading = shared ?? load(reads, read, known);
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

/** A stored response with the headers of the 304 that confirms it (RFC 9111, section 4.3.4). */
function renewed({ headers, ...others }: UpstreamResponse, confirming: UpstreamResponse): UpstreamResponse {
  const { age: _, ...before } = headers;
  const now = Object.entries(confirming.headers).filter(([name]) => !name.startsWith('content-'));
  return { ...others, headers: { ...before, ...Object.fromEntries(now) } };
}

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
