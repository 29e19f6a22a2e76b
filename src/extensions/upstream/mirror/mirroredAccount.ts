/** One mirrored account in this process: the tokens that can read it upstream, and the runs that refresh it while clients use it. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { LimitFunction } from 'p-limit';
import type { RunInTurn } from '../../../database/turns.ts';
import { createSharedRuns, type SharedRuns } from '../../../database/waiting.ts';
import type { Budget, Priority } from '../client/budget.ts';
import type { Credential } from '../client/tokens.ts';
import type { InTurn } from '../client/turns.ts';
import {
  AnotherAccount,
  createUpstream,
  type Timing,
  type Upstream,
  UpstreamError,
  type UpstreamOptions,
} from '../client/upstream.ts';
import {
  type AccountFreshness,
  createAccountFreshness,
  type FreshnessStore,
  type Written,
} from './accountFreshness.ts';
import type { AccountRuns } from './sync.ts';

export interface MirroredAccountOptions {
  readonly base: string;
  /** Whether the token of the account is that of the settings. */
  readonly isConfigured: boolean;
  readonly timing: Partial<Timing>;
  /** From the end of a run to the start of the next, in milliseconds. */
  readonly interval: number;
  /** For how long after its last use an account is refreshed, in milliseconds. */
  readonly idle: number;
  /** Called when the upstream rejects the token of a run. @param isCertain whether it is invalid for all routes. */
  onRejected(credential: Credential, isCertain: boolean): void;
}

interface Surroundings extends MirroredAccountOptions {
  readonly budget: Budget;
  /** Limits the background requests in flight, for all accounts together. */
  readonly inTurn: LimitFunction;
  /** Limits the requests of the account that clients wait for. */
  readonly onDemand: InTurn;
  readonly runs: AccountRuns;
  readonly stored: FreshnessStore;
  /** Called when rows of the account have changed here, whichever process wrote them. */
  onChanged(): void;
  onSuccess(): void;
  onFailure(error: unknown): void;
}

/** The interval, in milliseconds, at which the run of another process is polled, and for how long at most. */
const pollInterval = 250;
const longestPoll = 10_000;

export interface MirroredAccount extends Surroundings {
  /** The tokens here that can read the account upstream. */
  readonly credentials: Set<Credential>;
  readonly freshness: AccountFreshness;
  readonly closing: AbortController;
  /** The runs through the lists. They return whether the account is fresh then, and never reject. */
  readonly refreshes: SharedRuns<boolean>;
  askedAt: number;
  /** The latest `since` that `refresh` was called with. */
  since: number;
  /** Starts the next run. Undefined while a run is under way, and while no client uses the account. */
  timer: NodeJS.Timeout | undefined;
  /** The run that the first request after a pause has started. */
  awakening: Promise<boolean> | undefined;
  /** The current run through details, and what stops it when something more urgent has to be read. */
  details: Promise<void>;
  stopDetails(): void;
}

export function createMirroredAccount(options: Surroundings): MirroredAccount {
  const self: MirroredAccount = {
    ...options,
    credentials: new Set(),
    freshness: createAccountFreshness(options.stored, () => {
      // If another process has read the lists, it reads the details too.
      self.stopDetails();
      options.onChanged();
    }),
    refreshes: createSharedRuns(() => run(self)),
    closing: new AbortController(),
    // Only a request for the mirror is a use: forwarded requests are none.
    askedAt: Number.NEGATIVE_INFINITY,
    since: Number.NEGATIVE_INFINITY,
    timer: undefined,
    awakening: undefined,
    details: Promise.resolve(),
    stopDetails: () => {},
  };
  return self;
}

export async function closeAccount(self: MirroredAccount): Promise<void> {
  clearTimeout(self.timer);
  self.closing.abort();
  await self.refreshes.settled();
  await self.details;
}

const hasEnded = ({ viewer }: Credential) => viewer.ended?.aborted === true;

/** The newest token is the likeliest to be valid. */
const newestOf = ({ credentials }: MirroredAccount) => [...credentials].findLast((each) => !hasEnded(each));

/**
 * A client of the upstream for a viewer's requests, with the viewer's token or another token of the same account.
 * @param guard runs each request when it is its turn.
 */
export const upstreamFor = (self: MirroredAccount, credential = newestOf(self), guard?: RunInTurn) =>
  credential && upstreamWith(self, credential, 'demand', guard);

/** While a client waits: one retry, and no long pause. */
const timingOnDemand: Partial<Timing> = { timeout: 10_000, retries: 1, longestPause: 1_000 };

function upstreamWith(
  self: MirroredAccount,
  credential: Credential,
  priority: Priority,
  guard: RunInTurn = (send) => send(),
): Upstream {
  const { base, isConfigured, budget, onDemand, onRejected } = self;
  const { token } = credential;
  const isAwaited = priority === 'demand';
  const timing = { ...(isAwaited && timingOnDemand), ...self.timing };
  const inTurn: UpstreamOptions['inTurn'] = isAwaited
    ? (send, method) => onDemand(method === 'GET' ? 'read' : 'write', () => guard(send))
    : self.inTurn;
  const onUnauthorized = (route: string) => onRejected(credential, route === '/users/me');
  return createUpstream({ base, token, isConfigured, timing, budget, priority, inTurn, onUnauthorized });
}

const isUsed = ({ askedAt, idle }: MirroredAccount) => performance.now() - askedAt <= idle;

const isFresh = ({ freshness, interval, since }: MirroredAccount) =>
  freshness.age < interval && (freshness.refreshedAt ?? 0) >= since && !freshness.isOutdated;

/** Notes that a client uses the account. Returns the run that this starts, if the account had not been used for a while. */
export function touch(self: MirroredAccount): Promise<boolean> | undefined {
  const { refreshes, credentials, freshness, timer, interval } = self;
  self.askedAt = performance.now();
  if (timer || refreshes.current || credentials.size === 0) return self.awakening;
  if (isFresh(self)) scheduleRun(self, interval - freshness.age);
  else
    self.awakening = refreshes.begin().finally(() => {
      self.awakening = undefined;
    });
  return self.awakening;
}

/** Settles when the current run has ended, or the next if none is running; undefined if there will be none. */
export const arrival = ({ refreshes, credentials }: MirroredAccount) =>
  refreshes.current ?? (credentials.size > 0 ? refreshes.begin() : undefined);

/**
 * Reads what clients have written, by a run that begins after the call. Returns whether that succeeded.
 * @param since when all lists have to have been read at the earliest, by `performance.now()`.
 */
export function refresh(self: MirroredAccount, since = Number.NEGATIVE_INFINITY): Promise<boolean> {
  self.since = Math.max(self.since, since);
  return self.refreshes.begin();
}

/**
 * Notes, for all gateways, that a client has written upstream. The next run reads what the write may have changed. It begins at
 * once if clients use the mirror.
 */
export async function noteWrite(self: MirroredAccount, what: Written): Promise<void> {
  const { freshness, refreshes, onFailure } = self;
  await freshness.noteWrite(what).catch(onFailure);
  if (freshness.refreshedAt !== undefined && isUsed(self)) refreshes.begin();
}

/** Starts the next run in so many milliseconds, unless no client uses the account any more. */
function scheduleRun(self: MirroredAccount, delay: number): void {
  self.timer = setTimeout(() => {
    self.timer = undefined;
    if (isUsed(self) && self.credentials.size > 0) self.refreshes.begin();
    else self.stopDetails();
  }, delay).unref();
}

/** Reads what is not fresh, and returns whether that succeeded. */
async function run(self: MirroredAccount): Promise<boolean> {
  const { freshness, closing, interval, onFailure } = self;
  clearTimeout(self.timer);
  self.timer = undefined;
  const began = performance.now();
  const hasSucceeded = await makeFresh(self).catch((error: unknown) => {
    if (!closing.signal.aborted) onFailure(error);
    return false;
  });
  if (closing.signal.aborted) return false;
  // If only a part was read, or another process has read the lists, the next run is due when it was due before.
  const isDueBefore = hasSucceeded && (freshness.refreshedAt ?? 0) < began;
  scheduleRun(self, isDueBefore ? Math.max(interval - freshness.age, 0) : interval);
  return hasSucceeded;
}

/**
 * Reads the lists by a run of this process or, while another process reads them, waits for that. A token that ends meanwhile is
 * replaced by another one of the account.
 */
async function makeFresh(self: MirroredAccount): Promise<boolean> {
  const { freshness, closing } = self;
  const until = performance.now() + longestPoll;
  for (;;) {
    const isLeased = await freshness.reload();
    if (isFresh(self)) return true;
    const credential = newestOf(self);
    if (!credential || closing.signal.aborted) return false;
    const hasRead = isLeased ? undefined : await read(self, credential);
    if (hasRead !== undefined && (hasRead || !hasEnded(credential))) return hasRead;
    if (performance.now() > until) return false;
    if (!hasEnded(credential)) await sleep(pollInterval, undefined, { signal: closing.signal });
  }
}

/** Reads lists with a token. Returns whether that succeeded, or undefined if another process reads them. */
async function read(self: MirroredAccount, credential: Credential): Promise<boolean | undefined> {
  const { runs, freshness, closing } = self;
  self.stopDetails();
  await self.details;
  const { refreshedAt } = freshness;
  const upstream = upstreamWith(self, credential, 'refresh');
  const { onlyTemplates, mark, end } = freshness.begin(
    freshness.age >= self.interval || (refreshedAt ?? 0) < self.since,
  );
  // A run begins by asking whose token it is.
  const askedAt = performance.now();
  try {
    const began = await runs.lists(upstream, endOf(self, credential), { onlyTemplates, mark });
    if (began === undefined) return undefined;
    end(askedAt, began);
    self.onSuccess();
    startDetails(self, credential);
    return true;
  } catch (error) {
    const isEnd = closing.signal.aborted || (hasEnded(credential) && !(error instanceof UpstreamError));
    if (!isEnd) self.onFailure(error);
    if (error instanceof AnotherAccount) self.onRejected(credential, true);
    return false;
  }
}

/** A signal that is aborted when the account is closed, and when the token has ended. */
const endOf = ({ closing }: MirroredAccount, { viewer }: Credential) =>
  AbortSignal.any([closing.signal, ...(viewer.ended ? [viewer.ended] : [])]);

function startDetails(self: MirroredAccount, credential: Credential): void {
  const { runs, onFailure } = self;
  const upstream = upstreamWith(self, credential, 'details');
  const stop = new AbortController();
  self.stopDetails = () => stop.abort();
  const signal = AbortSignal.any([stop.signal, endOf(self, credential)]);
  self.details = runs.details(upstream, signal).catch((error: unknown) => {
    if (!signal.aborted) onFailure(error);
  });
}
