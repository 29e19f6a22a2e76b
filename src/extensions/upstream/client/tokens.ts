/**
 * Authentication by tokens of the upstream: the gateway asks the upstream for the user of a token. Tokens are held in memory only,
 * while they are in use: never in the database, a log line, a metric, a trace or an error.
 */

import { LRUCache } from 'lru-cache';
import pLimit, { type LimitFunction } from 'p-limit';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { digestOf } from '../../../auth/tokens.ts';
import { tokenIn, type Viewer } from '../../../auth/viewer.ts';
import { resultWithin } from '../../../database/waiting.ts';
import type { ForeignTokens } from '../../../extensionPoints.ts';
import { tooManyRequests } from '../../../http/errorResponse.ts';
import { atMost } from '../../../http/lruLimit.ts';
import { messages } from '../messages.ts';

export type TokenCheck =
  | { readonly kind: 'valid'; readonly userId: number }
  | { readonly kind: 'invalid' }
  /** The upstream gives no answer now. It may be asked again after `retryAfter` seconds; undefined if it cannot be reached. */
  | { readonly kind: 'away'; readonly retryAfter: number | undefined };

type Authentication = Awaited<ReturnType<ForeignTokens['authenticate']>>;

const upstreamAway = { code: 'SERVICE_UNAVAILABLE', message: messages.upstreamUnreachable } as const;

export interface Credential {
  readonly token: string;
  readonly viewer: Viewer;
}

export type UpstreamTokens = ReturnType<typeof createUpstreamTokens>;

interface UpstreamTokensOptions {
  /** Asks the upstream for the user of a token. @param viewer the viewer of a token that is known. */
  check(token: string, viewer?: Viewer): Promise<TokenCheck>;
  /** Called with a token that is new here, and with one that has ended or is no longer used. */
  onBegin(credential: Credential): void;
  onEnd(credential: Credential): void;
  /** After how long a token is checked again, in milliseconds. */
  readonly ttl: number;
  /** After how long without a request a token is forgotten, in milliseconds. */
  readonly idle: number;
}

/** The accepted characters of a token, more than RFC 6750 (section 2.1) allows, and its length. */
const possible = /^[!-~]{1,4096}$/;

/** How many valid tokens are held at most, and how many invalid ones. Those that were used least recently end first. */
const maxTokens = 10_000;

/** For how long, in milliseconds, an invalid token is rejected without asking again. */
const invalidFor = 10_000;

/** How many unknown tokens of an address are checked at the same time. */
const maxChecksOfAddress = 4;

/** How many invalid tokens an address may send in a minute. */
const maxFailures = 20;

/** For how long, in milliseconds, a token counts as valid while the upstream cannot be reached. */
const longestAway = 60 * 60_000;

/** How long, in milliseconds, a request waits while its token is checked again. */
const longestCheck = 1_000;

/** The pause, in milliseconds, before the upstream is asked again about a token, or about unknown tokens of an address. */
const retryDelay = 5_000;

/** How often, in milliseconds, tokens that are no longer used are forgotten, and doubtful ones are checked. */
const sweepInterval = 1_000;

/** All times are by `performance.now()`: if the system clock were set back, a token would be trusted for that much longer. */
interface KnownCredential extends Credential {
  readonly end: AbortController;
  /** When the newest request was sent to which the upstream said that the token is valid. */
  confirmed: number;
  /** When the upstream last rejected the token. Results of requests that were sent before then do not confirm the token. */
  doubtedAt: number;
  /** From when the upstream may be asked about the token again. */
  askAgainAt: number;
  checking: Promise<TokenCheck> | undefined;
}

export function createUpstreamTokens(options: UpstreamTokensOptions) {
  const { ttl, idle } = options;
  const known = createKnownTokens(options);
  const { askAgain, confirm } = createChecks(options, known);
  const checkFirst = createFirstChecks(options, known);
  const sweep = setInterval(() => {
    known.entries.purgeStale();
    // Streams may be open with a token that no client uses. It was rejected since it was last confirmed.
    for (const entry of known.entries.values())
      if (entry.doubtedAt > entry.confirmed) askAgain(entry)?.catch(() => {});
  }, sweepInterval).unref();

  return {
    /** The viewer of a token that was checked a short while ago. */
    known(header: string | undefined): Viewer | undefined {
      const token = possibleTokenIn(header);
      const entry = token === undefined ? undefined : known.get(token);
      return entry && performance.now() - entry.confirmed < ttl ? entry.viewer : undefined;
    },

    /** @param address the client's address: failures are counted per address. */
    async authenticate(header: string | undefined, address: string): Promise<Authentication> {
      const token = possibleTokenIn(header);
      if (token === undefined) return { viewer: null };
      const entry = known.get(token);
      if (!entry) return known.isKnownInvalid(token) ? { viewer: null } : checkFirst(token, address);
      const kind = await confirm(entry);
      if (kind === 'away') return { error: upstreamAway, retryAfter: secondsUntil(entry.askAgainAt) };
      return { viewer: kind === 'valid' ? entry.viewer : null };
    },

    /** Checks the token of a viewer again, if the last check is too old. This is a use of the token. Returns whether it is valid. */
    async recheck(viewer: Viewer): Promise<boolean> {
      const entry = known.of(viewer);
      return entry !== undefined && known.get(entry.token) === entry && (await confirm(entry)) === 'valid';
    },

    /** The longest pause, in seconds, between two calls of `recheck`: an unused token is forgotten. */
    maxAge: Math.min(ttl, idle / 2) / 1_000,
    /** The token of a viewer. Undefined if it has ended, or is one of the gateway's own. */
    credentialOf: (viewer: Viewer): Credential | undefined => known.of(viewer),
    /**
     * Must be called when any other response of the upstream has rejected a token.
     * @param isCertain whether it is invalid, or belongs to another user now. Otherwise one route has rejected it, and it is checked again.
     */
    noteRejected({ viewer }: Credential, isCertain: boolean): void {
      const entry = known.of(viewer);
      if (!entry) return;
      if (isCertain) known.noteInvalid(entry.token);
      entry.doubtedAt = performance.now();
      entry.confirmed = Math.min(entry.confirmed, entry.doubtedAt - ttl);
    },

    close() {
      clearInterval(sweep);
      known.entries.clear();
    },
  };
}

type KnownTokens = ReturnType<typeof createKnownTokens>;

/** The valid tokens, and those that were found invalid a moment ago, by their digests. */
function createKnownTokens({ onEnd, idle, ttl }: UpstreamTokensOptions) {
  const entries = new LRUCache<string, KnownCredential>({
    ...atMost(maxTokens),
    ttl: idle,
    updateAgeOnGet: true,
    dispose(entry) {
      entry.end.abort();
      onEnd(entry);
    },
  });
  const byViewer = new WeakMap<Viewer, KnownCredential>();
  const invalid = new LRUCache<string, true>({ ...atMost(maxTokens), ttl: invalidFor });

  function noteInvalid(token: string): void {
    entries.delete(digestOf(token));
    invalid.set(digestOf(token), true);
  }

  return {
    entries,
    noteInvalid,
    isKnownInvalid: (token: string) => invalid.has(digestOf(token)),
    get: (token: string) => entries.get(digestOf(token)),
    /** The entry of a viewer whose token has not ended. */
    of(viewer: Viewer): KnownCredential | undefined {
      const entry = byViewer.get(viewer);
      return entry?.end.signal.aborted ? undefined : entry;
    },
    /** @param askedAt when the upstream was asked about it, by `performance.now()`. */
    add(token: string, userId: number, askedAt: number): KnownCredential {
      const end = new AbortController();
      const entry: KnownCredential = {
        token,
        viewer: { id: userId, tokenId: undefined, scope: 'activate', ended: end.signal },
        end,
        confirmed: askedAt,
        doubtedAt: Number.NEGATIVE_INFINITY,
        askAgainAt: performance.now() + Math.min(ttl, retryDelay),
        checking: undefined,
      };
      byViewer.set(entry.viewer, entry);
      entries.set(digestOf(token), entry);
      return entry;
    },
  };
}

function createChecks({ check, ttl }: UpstreamTokensOptions, known: KnownTokens) {
  async function ask(entry: KnownCredential): Promise<TokenCheck> {
    const askedAt = performance.now();
    const checked = await check(entry.token, entry.viewer);
    if (entry.end.signal.aborted) return checked;
    if (checked.kind === 'away')
      entry.askAgainAt = Math.max(entry.askAgainAt, performance.now() + (checked.retryAfter ?? 0) * 1_000);
    else if (checked.kind === 'invalid' || checked.userId !== entry.viewer.id) known.noteInvalid(entry.token);
    // It may have been rejected since.
    else if (askedAt > entry.doubtedAt) entry.confirmed = askedAt;
    return checked;
  }

  /** Returns the running check, or a new one; undefined while the upstream must not be asked again. */
  function askAgain(entry: KnownCredential): Promise<TokenCheck> | undefined {
    const now = performance.now();
    if (!entry.checking && now >= entry.askAgainAt) {
      entry.askAgainAt = now + Math.min(ttl, retryDelay);
      entry.checking = ask(entry).finally(() => {
        entry.checking = undefined;
      });
    }
    return entry.checking;
  }

  return {
    askAgain,
    /** Returns whether a token is valid. Checks it if the last check is too old: one check serves all callers in the meantime. */
    async confirm(entry: KnownCredential): Promise<TokenCheck['kind']> {
      const now = performance.now();
      if (now - entry.confirmed < ttl) return 'valid';
      // A silent upstream must not delay reads of the mirror. The check goes on in the background.
      const checked = await resultWithin(longestCheck, askAgain(entry));
      if (entry.end.signal.aborted) return 'invalid';
      // The token was valid a while ago, and the upstream has not said otherwise.
      return checked?.kind === 'valid' || now - entry.confirmed < longestAway ? 'valid' : 'away';
    },
  };
}

/** Checks unknown tokens: once for all requests with the same token, and only a few of an address at a time. */
function createFirstChecks({ check, onBegin }: UpstreamTokensOptions, known: KnownTokens) {
  const failures = new RateLimiterMemory({ keyPrefix: 'check', points: maxFailures, duration: 60 });
  const underWay = new Map<string, Promise<Authentication>>();
  /** The queues, one for each address, so that a client with many tokens delays only itself. */
  const lines = new LRUCache<string, LimitFunction>(atMost(maxTokens));
  /** Until when the upstream is not asked about a token, by its digest, or about any unknown token of an address. */
  const waiting = new LRUCache<string, number>({ ...atMost(maxTokens), ttl: longestAway });

  async function checkUnknown(token: string, address: string): Promise<Authentication> {
    // Other tokens of the address may have been found invalid while this one waited.
    const before = await failures.get(address);
    if (before !== null && before.consumedPoints >= maxFailures) {
      const retryAfter = Math.ceil(before.msBeforeNext / 1_000);
      return { error: tooManyRequests(retryAfter), retryAfter };
    }
    const until = Math.max(...[digestOf(token), address].map((key) => waiting.get(key) ?? 0));
    if (until > performance.now()) return { error: upstreamAway, retryAfter: secondsUntil(until) };
    const askedAt = performance.now();
    const checked = await check(token);
    if (checked.kind === 'away') {
      // If the upstream asks to wait, other tokens of the address need not.
      const { retryAfter = retryDelay / 1_000 } = checked;
      const key = checked.retryAfter === undefined ? address : digestOf(token);
      waiting.set(key, performance.now() + retryAfter * 1_000);
      return { error: upstreamAway, retryAfter };
    }
    if (checked.kind === 'valid') {
      const credential = known.add(token, checked.userId, askedAt);
      onBegin(credential);
      return { viewer: credential.viewer };
    }
    known.noteInvalid(token);
    await failures.penalty(address);
    return { viewer: null };
  }

  return (token: string, address: string): Promise<Authentication> => {
    const digest = digestOf(token);
    const shared = underWay.get(digest);
    if (shared) return shared;
    const line = lines.get(address) ?? pLimit(maxChecksOfAddress);
    lines.set(address, line);
    const checking = line(() => checkUnknown(token, address)).finally(() => underWay.delete(digest));
    underWay.set(digest, checking);
    return checking;
  };
}

/** The seconds until a time, at least 1, for `Retry-After`. @param time by `performance.now()`. */
const secondsUntil = (time: number) => Math.max(Math.ceil((time - performance.now()) / 1_000), 1);

function possibleTokenIn(header: string | undefined): string | undefined {
  const token = tokenIn(header);
  return token !== undefined && possible.test(token) ? token : undefined;
}
