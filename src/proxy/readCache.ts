/**
 * The private cache of reads: responses of the upstream, stored by account, token and URL as sent (RFC 9111). A token may have
 * become another account's when it is used: what one has read is sent to another only once the upstream has said, after
 * the read, that the first is the account's.
 */

import type { ChangeFeed } from '../database/feed/changeFeed.ts';
import { resultWithin } from '../database/waiting.ts';
import type { Reader } from '../upstream/access.ts';
import { type Failure, isFailure, type UpstreamRequest, type UpstreamResponse } from './forward.ts';
import { type Policy, policyFor, wantsNewResponse } from './policy.ts';

export interface Read {
  readonly accountId: number;
  readonly reader: Reader;
  /** As the client has sent it. */
  readonly target: string;
  /** Must not be conditional. */
  readonly request: UpstreamRequest;
  send(request: UpstreamRequest): Promise<UpstreamResponse | Failure>;
  /** Whether the upstream allows no request of the account for now. */
  isBudgetSpent(): boolean;
}

export interface ReadResult {
  readonly given: UpstreamResponse | Failure;
  /** In seconds; undefined for a response that was not stored. */
  readonly age?: number;
}

export interface ReadCache {
  read(read: Read): Promise<ReadResult>;
  /** Forgets what is stored of an account, or of all accounts. What is being read is not stored either. */
  drop(accountId?: number): void;
}

export interface ReadCacheOptions {
  readonly feed: ChangeFeed;
  /** For how many seconds a response is fresh if the upstream does not say. */
  readonly lifetime: number;
  /** How much memory the stored responses may take, in bytes. */
  readonly maxBytes: number;
}

interface StoredResponse {
  readonly response: UpstreamResponse;
  readonly policy: Policy;
  readonly bytes: number;
  readonly reader: Reader;
  readonly target: string;
  /** By `performance.now()`. */
  readonly receivedAt: number;
  /** Whether the upstream has said since then that the token is the account's. */
  isConfirmed: boolean;
}

/** What is known of one account since its last write. */
interface AccountReads {
  /** The stored responses by token and target, the least recently used first. */
  readonly stored: Map<string, StoredResponse>;
  /** The newest of each target, whichever token has read it. */
  readonly newest: Map<string, StoredResponse>;
  /** The reads that are under way, which equal requests share. */
  readonly underway: Map<string, Promise<UpstreamResponse | Failure>>;
  bytes: number;
}

export function createReadCache({ feed, lifetime, maxBytes }: ReadCacheOptions): ReadCache {
  const accounts = createAccounts(maxBytes);
  const hasHeardAll = createHearing(feed);

  /** Sends a read, and stores the response. */
  async function load(reads: AccountReads, read: Read, known: StoredResponse | undefined) {
    const { request, reader, target, accountId } = read;
    const validators = known?.policy.validatorsFor(request);
    const sentAt = performance.now();
    const given = await read.send({ ...request, headers: { ...request.headers, ...validators } });
    if (isFailure(given) || isBusy(given)) return given;
    const response = given.status === 304 && known ? renewed(known.response, given) : given;
    const receivedAt = performance.now();
    const policy = policyFor(request, response, lifetime, (receivedAt - sentAt) / 1_000);
    const bytes = response.body.length + 2 * target.length + overhead + (policy?.bytes ?? 0);
    const stored = policy && { response, policy, bytes, reader, target, receivedAt, isConfirmed: false };
    accounts.store(accountId, reads, keyOf(read), stored);
    return response;
  }

  /** What is stored for a read: the newest response to its target if that may be sent to it, or else what its token has read. */
  async function find(reads: AccountReads, read: Read): Promise<StoredResponse | undefined> {
    const own = accounts.find(reads, keyOf(read));
    const newest = reads.newest.get(read.target);
    if (!newest || newest === own || own?.policy.satisfies(read.request)) return own;
    // It may be another variant than the request wants.
    if (!newest.policy.isForAllTokens || !newest.policy.mayReplaceError(read.request)) return own;
    if (!newest.isConfirmed && newest.policy.satisfies(read.request))
      newest.isConfirmed = await newest.reader.isConfirmedSince(newest.receivedAt);
    return newest.isConfirmed ? newest : own;
  }

  return {
    drop: accounts.drop,
    async read(read) {
      const { accountId, request } = read;
      if (!(await hasHeardAll())) return { given: await read.send(request) };
      const reads = accounts.of(accountId);
      const found = await find(reads, read);
      // A write may have come in between.
      const known = found && accounts.isCurrent(accountId, reads) ? found : undefined;
      if (known?.policy.satisfies(request)) return fromStore(known);
      const instead = known?.policy.mayReplaceError(request) ? known : undefined;
      if (instead && read.isBudgetSpent()) return fromStore(instead);
      if (request.method !== 'GET') return { given: await read.send(request) };

      const sharedKey = `${keyOf(read)} ${JSON.stringify(request.headers)}`;
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
      return mayReplace && (isFailure(given) || isBusy(given)) ? fromStore(instead) : { given };
    },
  };
}

const keyOf = ({ reader, target }: Read) => `${reader.id} ${target}`;

/** Whether the upstream is broken, or has too much to do. */
const isBusy = ({ status }: UpstreamResponse) => status === 429 || status >= 500;

const fromStore = ({ response, policy }: StoredResponse): ReadResult => ({
  given: response,
  age: Math.floor(policy.age()),
});

/** A stored response with the headers of the 304 that confirms it (RFC 9111, section 4.3.4). */
function renewed(
  { status, headers, body }: UpstreamResponse,
  confirming: UpstreamResponse,
): UpstreamResponse {
  const { age: _, ...before } = headers;
  const now = Object.entries(confirming.headers).filter(([name]) => !name.startsWith('content-'));
  return { status, headers: { ...before, ...Object.fromEntries(now) }, body };
}

/** How long, in milliseconds, a read waits for announcements. */
const longestWait = 250;

/** After a wait that timed out, no read waits for this many milliseconds. */
const pauseAfterTimeout = 1_000;

/**
 * Returns whether every announcement has arrived here that was made before the call. Any gateway may have
 * acknowledged a write before then.
 */
function createHearing(feed: ChangeFeed): () => Promise<boolean> {
  let lastFailure = Number.NEGATIVE_INFINITY;
  return async () => {
    if (!feed.listening || performance.now() - lastFailure < pauseAfterTimeout) return false;
    // No other process has the embedded engine open.
    if (!feed.catchUp) return true;
    const hasCaughtUp = await resultWithin(longestWait, feed.catchUp());
    if (!hasCaughtUp) lastFailure = performance.now();
    return hasCaughtUp === true && feed.listening;
  };
}

/** The memory, in bytes, that a stored response takes beside its body and its key. Measured roughly. */
const overhead = 2_000;

/** The share of the memory that one response may take. */
const largestShare = 1 / 8;

/**
 * The stored responses of all accounts within one bound. Beyond it the account that takes most loses its least recently used
 * response: an account that takes no more than its fair share loses none because of others.
 */
function createAccounts(maxBytes: number) {
  const accounts = new Map<number, AccountReads>();
  let total = 0;

  function remove(reads: AccountReads, key: string): void {
    const removed = reads.stored.get(key);
    if (!removed) return;
    reads.stored.delete(key);
    if (reads.newest.get(removed.target) === removed) reads.newest.delete(removed.target);
    reads.bytes -= removed.bytes;
    total -= removed.bytes;
  }

  /** Whether there was no write of the account since these reads. */
  const isCurrent = (accountId: number, reads: AccountReads) => accounts.get(accountId) === reads;

  function evict(): void {
    const [first, ...others] = accounts.values();
    const largest = others.reduce((most, each) => (most && each.bytes <= most.bytes ? most : each), first);
    const [oldest] = largest?.stored.keys() ?? [];
    if (largest && oldest !== undefined) remove(largest, oldest);
  }

  return {
    isCurrent,
    /** The reads of an account since its last write. */
    of(accountId: number): AccountReads {
      const known = accounts.get(accountId);
      if (known) return known;
      const reads: AccountReads = { stored: new Map(), newest: new Map(), underway: new Map(), bytes: 0 };
      accounts.set(accountId, reads);
      return reads;
    },
    find({ stored }: AccountReads, key: string): StoredResponse | undefined {
      const found = stored.get(key);
      // It is the most recently used from now on.
      if (found && stored.delete(key)) stored.set(key, found);
      return found;
    },
    /** Stores a response in place of the one before; none, if there is none to store. */
    store(accountId: number, reads: AccountReads, key: string, response: StoredResponse | undefined): void {
      // Reads from before a write are forgotten.
      if (!isCurrent(accountId, reads)) return;
      remove(reads, key);
      if (!response || response.bytes > maxBytes * largestShare) return;
      reads.stored.set(key, response);
      reads.newest.set(response.target, response);
      reads.bytes += response.bytes;
      total += response.bytes;
      while (total > maxBytes) evict();
    },
    drop(accountId?: number): void {
      if (accountId === undefined) {
        accounts.clear();
        total = 0;
        return;
      }
      total -= accounts.get(accountId)?.bytes ?? 0;
      accounts.delete(accountId);
    },
  };
}
