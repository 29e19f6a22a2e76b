/**
 * Tokens of the upstream that clients bring. Whose they are is asked upstream, and known in memory alone, for as long as
 * they are in use: never in the database, a log line, a metric, a trace or an error.
 */

import { LRUCache } from 'lru-cache';
import pLimit, { type LimitFunction } from 'p-limit';
import RateLimiterMemory from 'rate-limiter-flexible/lib/RateLimiterMemory.js';
import { digestOf } from '../auth/tokens.ts';
import { tokenIn, type Viewer } from '../auth/viewer.ts';
import { atMost } from '../http/lruLimit.ts';
import { resultWithin } from './resultWithin.ts';

/** What the upstream says of a token. */
export type TokenCheck =
  | { readonly kind: 'valid'; readonly userId: number }
  | { readonly kind: 'invalid' }
  /** It cannot say now. @param retryAfter for how many seconds it asks not to be asked again, if it does. */
  | { readonly kind: 'away'; readonly retryAfter: number | undefined };

/**
 * What the upstream says to a token that stands for somebody: that it goes on to, that it does not, or for somebody else;
 * or that it refuses it for something, which may be all that it means.
 */
export type TokenStatus = 'valid' | 'invalid' | 'another' | 'doubtful';

/** Whose token a request has, null for nobody's; or why that cannot be told now. */
export type Authentication =
  | { readonly viewer: Viewer | null }
  | { readonly error: 'upstreamAway' | 'tooManyRequests'; readonly retryAfter: number };

/** A token that stands for a viewer. */
export interface Credential {
  readonly token: string;
  readonly viewer: Viewer;
}

export interface UpstreamTokens {
  /** The viewer, if their token was checked a short while ago. */
  known(header: string | undefined): Viewer | undefined;
  /** @param address of the client: failures are counted for each. */
  authenticate(header: string | undefined, address: string): Promise<Authentication>;
  /** Whether the token that a viewer came with still stands for them, as far as can be told. */
  isValid(viewer: Viewer): Promise<boolean>;
  /** How often, in seconds, that has to be asked at the least: a token that nobody asks about for long is forgotten. */
  readonly maxAge: number;
  /** The token that a viewer came with; undefined for one that has ended, or is the gateway's own. */
  credentialOf(viewer: Viewer): Credential | undefined;
  /**
   * Must be told of what the upstream says to a token in any other response.
   * @param askedAt when the request was sent, in milliseconds since the epoch: a token may have been revoked since.
   */
  tell(credential: Credential, said: TokenStatus, askedAt: number): void;
  close(): void;
}

export interface UpstreamTokensOptions {
  /** Asks the upstream whose token it is. @param viewer whose it was, if it was anybody's. */
  check(token: string, viewer?: Viewer): Promise<TokenCheck>;
  /** Told of a token that is met, and of one that has ended or is not in use any more. */
  onBegin(credential: Credential): void;
  onEnd(credential: Credential): void;
  /** Told of a token for which the upstream answers another user than before. */
  onOther(): void;
  /** After how long a token is checked again, in milliseconds. */
  readonly ttl: number;
  /** After how long without a request a token is forgotten, in milliseconds. */
  readonly idle: number;
}

/** What a token may consist of (RFC 6750, section 2.1), and more; how long it may be. */
const possible = /^[!-~]{1,4096}$/;

/** How many tokens are known at most; as many again may be remembered to be invalid. */
const maxTokens = 10_000;

/** How long, in milliseconds, a token is known to be invalid. */
const refusalLasts = 10_000;

/** How many tokens that nobody has brought before are checked at the same time. */
const maxFirstChecks = 16;

/** The same from one address, and how many more may wait there. */
const maxChecksOfAddress = 4;
const longestLine = 100;

/** How long, in milliseconds, the upstream is not asked again about new tokens from an address after it could not say. */
const awayLasts = 1_000;

/** How many tokens from one address may turn out to be invalid in a minute. */
const maxFailures = 20;

/** How long, in milliseconds, a token counts as valid while the upstream is away. */
const longestAway = 60 * 60_000;

/** How long, in milliseconds, a request waits for the token that it came with to be checked again. */
const longestCheck = 1_000;

/** How long, in milliseconds, the upstream counts as away for a token once it was. */
const retryDelay = 5_000;

interface Entry extends Credential {
  readonly end: AbortController;
  /** When the newest request was sent to which the upstream said that the token is valid, in milliseconds since the epoch. */
  confirmed: number;
  /** When the upstream last refused the token for something. What it was asked before then confirms nothing. */
  doubtedAt: number;
  /** From when the upstream may be asked about the token again. */
  askAgainAt: number;
  /** Until it is asked again though nobody uses the token. */
  recheckTimer: ReturnType<typeof setTimeout> | undefined;
  checking: Promise<TokenCheck> | undefined;
}

export function createUpstreamTokens(options: UpstreamTokensOptions): UpstreamTokens {
  const { ttl, idle } = options;
  const known = createKnownTokens(options);
  const confirm = createConfirmation(options, known);
  const meet = createFirstChecks(options, known);
  const sweep = setInterval(known.sweep, Math.min(idle, 30_000)).unref();

  /** As soon as the upstream may be asked about it again, and again if it could not say. */
  function confirmSoon(entry: Entry): void {
    entry.recheckTimer ??= setTimeout(
      async () => {
        entry.recheckTimer = undefined;
        if (Date.now() >= entry.askAgainAt) await confirm(entry).catch(() => {});
        const isOpen = !entry.end.signal.aborted && Date.now() - entry.confirmed >= ttl;
        if (isOpen) confirmSoon(entry);
      },
      Math.max(entry.askAgainAt - Date.now(), 1),
    ).unref();
  }

  return {
    known(header) {
      const token = possibleTokenIn(header);
      const entry = token === undefined ? undefined : known.get(token);
      return entry && Date.now() - entry.confirmed < ttl ? entry.viewer : undefined;
    },

    async authenticate(header, address) {
      const token = possibleTokenIn(header);
      if (token === undefined) return { viewer: null };
      const entry = known.get(token);
      if (!entry) return known.isKnownInvalid(token) ? { viewer: null } : meet(token, address);
      const kind = await confirm(entry);
      if (kind === 'away') return { error: 'upstreamAway', retryAfter: secondsUntil(entry.askAgainAt) };
      return { viewer: kind === 'valid' ? entry.viewer : null };
    },

    async isValid(viewer) {
      const entry = known.of(viewer);
      // Whoever has a stream open goes on using the token.
      if (!entry || known.get(entry.token) !== entry) return false;
      return (await confirm(entry)) === 'valid';
    },

    maxAge: Math.min(ttl, idle / 2) / 1_000,
    credentialOf: known.of,
    tell(credential, said, askedAt) {
      const entry = known.of(credential.viewer);
      if (!entry) return;
      applyStatus(options, known, entry, { said, askedAt });
      // Not when the token is used the next time: streams may be open with it.
      if (said === 'doubtful') confirmSoon(entry);
    },

    close() {
      clearInterval(sweep);
      known.clear();
    },
  };
}

type KnownTokens = ReturnType<typeof createKnownTokens>;

/** The tokens that stand for somebody, and those that were refused a moment ago, by their digests. */
function createKnownTokens({ onEnd, idle, ttl }: Pick<UpstreamTokensOptions, 'onEnd' | 'idle' | 'ttl'>) {
  const entries = new LRUCache<string, Entry>({
    ...atMost(maxTokens),
    ttl: idle,
    updateAgeOnGet: true,
    dispose(entry) {
      clearTimeout(entry.recheckTimer);
      entry.end.abort();
      onEnd(entry);
    },
  });
  const byViewer = new WeakMap<Viewer, Entry>();
  const refused = new LRUCache<string, true>({ ...atMost(maxTokens), ttl: refusalLasts });
  return {
    get: (token: string) => entries.get(digestOf(token)),
    isKnownInvalid: (token: string) => refused.has(digestOf(token)),
    /** The entry of a viewer whose token has not ended. */
    of(viewer: Viewer): Entry | undefined {
      const entry = byViewer.get(viewer);
      return entry?.end.signal.aborted ? undefined : entry;
    },
    /** @param askedAt when the upstream was asked about it. */
    add(token: string, userId: number, askedAt: number): Entry {
      const end = new AbortController();
      const viewer: Viewer = { id: userId, tokenId: undefined, ended: end.signal };
      const entry: Entry = {
        token,
        viewer,
        end,
        confirmed: askedAt,
        doubtedAt: 0,
        askAgainAt: Date.now() + Math.min(ttl, retryDelay),
        recheckTimer: undefined,
        checking: undefined,
      };
      byViewer.set(viewer, entry);
      entries.set(digestOf(token), entry);
      return entry;
    },
    refuse(token: string): void {
      entries.delete(digestOf(token));
      refused.set(digestOf(token), true);
    },
    sweep: () => entries.purgeStale(),
    clear: () => entries.clear(),
  };
}

/** Takes note of what the upstream says to a token. */
function applyStatus(
  { onOther, ttl }: Pick<UpstreamTokensOptions, 'onOther' | 'ttl'>,
  known: KnownTokens,
  entry: Entry,
  { said, askedAt }: { readonly said: TokenStatus; readonly askedAt: number },
): void {
  if (said === 'valid') {
    if (askedAt > entry.doubtedAt) entry.confirmed = Math.max(entry.confirmed, askedAt);
    return;
  }
  if (said === 'doubtful') {
    entry.doubtedAt = Date.now();
    entry.confirmed = Math.min(entry.confirmed, entry.doubtedAt - ttl);
    return;
  }
  if (said === 'another') onOther();
  known.refuse(entry.token);
}

/** Says whether a token is valid; checks it if that was too long ago, once for all who ask meanwhile. */
function createConfirmation(options: UpstreamTokensOptions, known: KnownTokens) {
  const { check, ttl } = options;

  async function ask(entry: Entry): Promise<TokenCheck> {
    const askedAt = Date.now();
    const checked = await check(entry.token, entry.viewer);
    if (entry.end.signal.aborted) return checked;
    if (checked.kind === 'away') {
      entry.askAgainAt = Math.max(entry.askAgainAt, Date.now() + (checked.retryAfter ?? 0) * 1_000);
      return checked;
    }
    const isSame = checked.kind === 'valid' && checked.userId === entry.viewer.id;
    const said = isSame ? 'valid' : checked.kind === 'valid' ? 'another' : 'invalid';
    applyStatus(options, known, entry, { said, askedAt });
    return checked;
  }

  return async (entry: Entry): Promise<TokenCheck['kind']> => {
    const now = Date.now();
    if (now - entry.confirmed < ttl) return 'valid';
    if (!entry.checking && now >= entry.askAgainAt) {
      entry.askAgainAt = now + Math.min(ttl, retryDelay);
      entry.checking = ask(entry).finally(() => {
        entry.checking = undefined;
      });
    }
    // An upstream that does not respond must not hold up what is here: the check goes on.
    const checked = (await resultWithin(longestCheck, entry.checking)) ?? {
      kind: 'away',
      retryAfter: undefined,
    };
    if (entry.end.signal.aborted) return 'invalid';
    // It was valid a while ago, and nobody can say that it no longer is.
    return checked.kind === 'valid' || now - entry.confirmed < longestAway ? 'valid' : 'away';
  };
}

/** Checks tokens that nobody has brought before, each once for all who bring it, and a few at the same time. */
function createFirstChecks(
  { check, onBegin }: Pick<UpstreamTokensOptions, 'check' | 'onBegin'>,
  known: KnownTokens,
) {
  const failures = new RateLimiterMemory({ keyPrefix: 'check', points: maxFailures, duration: 60 });
  const underWay = new Map<string, Promise<Authentication>>();
  const inTurn = pLimit(maxFirstChecks);
  const lines = createAddressQueues();
  const soon = Math.ceil(retryDelay / 1_000);
  /** Tokens that the upstream asks to wait with, each until when, by their digests: others from the address may be welcome. */
  const waiting = new LRUCache<string, number>({ ...atMost(maxTokens), ttl: longestAway });

  async function meet(token: string, address: string): Promise<Authentication> {
    // Some from the address may have been invalid while this one waited.
    const before = await failures.get(address);
    if (before !== null && before.consumedPoints >= maxFailures)
      return { error: 'tooManyRequests', retryAfter: Math.ceil(before.msBeforeNext / 1_000) };
    const until = waiting.get(digestOf(token)) ?? 0;
    if (until > Date.now()) return { error: 'upstreamAway', retryAfter: secondsUntil(until) };
    if (lines.isAway(address)) return { error: 'upstreamAway', retryAfter: soon };
    const askedAt = Date.now();
    const checked = await check(token);
    if (checked.kind === 'away') {
      const { retryAfter = 0 } = checked;
      lines.noteAway(address);
      if (retryAfter > 0) waiting.set(digestOf(token), Date.now() + retryAfter * 1_000);
      return { error: 'upstreamAway', retryAfter: retryAfter || soon };
    }
    if (checked.kind === 'valid') {
      const credential = known.add(token, checked.userId, askedAt);
      onBegin(credential);
      return { viewer: credential.viewer };
    }
    known.refuse(token);
    await failures.penalty(address);
    return { viewer: null };
  }

  return (token: string, address: string): Promise<Authentication> => {
    const digest = digestOf(token);
    const shared = underWay.get(digest);
    if (shared) return shared;
    const line = lines.of(address);
    if (line.pendingCount >= longestLine)
      return Promise.resolve({ error: 'tooManyRequests', retryAfter: soon });
    const checking = line(() => inTurn(() => meet(token, address))).finally(() => underWay.delete(digest));
    underWay.set(digest, checking);
    return checking;
  };
}

/** What waits for a first check, a line for each address: whoever brings many tokens waits behind themselves. */
function createAddressQueues() {
  const lines = new LRUCache<string, LimitFunction>(atMost(maxTokens));
  const away = new LRUCache<string, true>({ ...atMost(maxTokens), ttl: awayLasts });
  return {
    of(address: string): LimitFunction {
      const line = lines.get(address) ?? pLimit(maxChecksOfAddress);
      lines.set(address, line);
      return line;
    },
    /** Notes that the upstream could not say of a token from there whose it is. */
    noteAway: (address: string) => void away.set(address, true),
    isAway: (address: string) => away.has(address),
  };
}

/** For `Retry-After`: one at least. @param time in milliseconds since the epoch. */
const secondsUntil = (time: number) => Math.max(Math.ceil((time - Date.now()) / 1_000), 1);

function possibleTokenIn(header: string | undefined): string | undefined {
  const token = tokenIn(header);
  return token !== undefined && possible.test(token) ? token : undefined;
}
