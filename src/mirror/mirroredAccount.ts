/** One mirrored account in this process: the tokens that can read it upstream, and the runs that refresh it while clients use it. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { LimitFunction } from 'p-limit';
import { createSharedRuns, type SharedRuns } from '../database/sharedRuns.ts';
import type { Budget, Priority } from '../upstream/budget.ts';
import type { Credential, TokenStatus } from '../upstream/tokens.ts';
import {
  AnotherAccount,
  createUpstream,
  type Timing,
  type Upstream,
  UpstreamError,
} from '../upstream/upstream.ts';
import { type AccountFreshness, createAccountFreshness, type ListsRead } from './accountFreshness.ts';
import type { WithActivationLock } from './activationLock.ts';
import { allParts, type Part } from './pullAccount.ts';
import { type FreshnessStore, untilNoted } from './storedFreshness.ts';

/** The runs of an account. Of each kind one runs at a time, in all processes over the database. */
export interface AccountRuns {
  /**
   * Reads lists. Returns undefined while another process reads them.
   * @param advanced called with the number of records read so far.
   * @param parts the lists to read; all unless given.
   */
  lists(
    upstream: Upstream,
    signal: AbortSignal,
    advanced: (records: number) => void,
    parts: readonly Part[] | undefined,
  ): Promise<ListsRead | undefined>;
  /** Reads pending details until there are none, or the signal is aborted. */
  details(upstream: Upstream, signal: AbortSignal): Promise<void>;
  /** Marks the details of a session as pending: a client has changed them upstream. */
  noteChanged(session: number): Promise<void>;
  /** Reads a session again that a client has written to, or removes it if the client has deleted it. */
  session(upstream: Upstream, written: WrittenSession): Promise<void>;
  /** How many records of the upstream are left out: they could not be understood, or are not the account's. */
  skipped(): number;
}

/** A session that a client has written to upstream. */
export interface WrittenSession {
  readonly id: number;
  readonly isDeleted: boolean;
}

/** What a write may have changed. */
export interface WriteScope {
  /** The lists that may have changed. */
  readonly parts: readonly Part[];
  readonly session?: WrittenSession | undefined;
}

export interface MirroredAccountOptions {
  readonly id: number;
  readonly base: string;
  readonly timing: Partial<Timing>;
  readonly budget: Budget;
  readonly withActivationLock: WithActivationLock;
  /** Limits how many requests that no client waits for are in flight, for all accounts together. */
  readonly inTurn: LimitFunction;
  readonly runs: AccountRuns;
  readonly freshnessStore: FreshnessStore;
  /** From the end of a run to the start of the next, in milliseconds. */
  readonly interval: number;
  /** For how long after its last use an account is refreshed, in milliseconds. */
  readonly idle: number;
  /** Called when rows of the account have changed here, whichever process wrote them. */
  onChanged(): void;
  /** Called after each run. */
  onSuccess(): void;
  onFailure(error: unknown): void;
  /**
   * Called with what the upstream says of the token of a run.
   * @param askedAt when the request was sent, by `performance.now()`.
   */
  onTokenStatus(credential: Credential, said: TokenStatus, askedAt: number): void;
}

export interface MirroredAccount {
  readonly id: number;
  readonly budget: Budget;
  /** Runs its activations one at a time. */
  readonly activateInTurn: WithActivationLock;
  readonly freshness: AccountFreshness;
  /** How many records of the upstream are left out. */
  skipped(): number;
  /** How many records the first run has read so far. */
  readonly progress: number;
  /** Whether no token here could read the account upstream. */
  readonly isUnreachable: boolean;
  /** Notes that a client uses the account. Returns the run that this starts, if the account had not been used for a while. */
  touch(): Promise<boolean> | undefined;
  /** Settles when the current run has ended, or the next if none is running; undefined if there will be none. */
  arrival(): Promise<boolean> | undefined;
  /** The newest token of the account here, which is the likeliest to be valid. */
  readonly credential: Credential | undefined;
  /**
   * Notes, for all gateways, that a client has written upstream. The next run reads what the write may have changed. It begins at
   * once if clients use what is here.
   */
  noteWrite(scope: WriteScope): Promise<void>;
  /**
   * Reads at least these lists, or all of them, by a run that begins after the call. Returns whether that succeeded.
   * @param since when a run of another process has to have begun at the earliest to count as well, by `performance.now()`. It
   * always has to have begun after every write.
   */
  refresh(parts?: readonly Part[], since?: number): Promise<boolean>;
  add(credential: Credential): void;
  remove(credential: Credential): void;
  /** A client of the upstream for a viewer's requests, with the viewer's token or another token of the same account. */
  upstreamFor(
    credential: Credential | undefined,
    priority: Priority,
    timing: Partial<Timing>,
  ): Upstream | undefined;
  close(): Promise<void>;
}

/** The interval, in milliseconds, at which the run of another process is polled, and for how long at most. */
const pollInterval = 250;
const longestPoll = 10_000;

/** What the functions below share. */
interface AccountState extends MirroredAccountOptions {
  readonly credentials: Set<Credential>;
  readonly freshness: AccountFreshness;
  readonly closing: AbortController;
  /** The runs through the lists. They return whether they succeeded, and never reject. */
  readonly refreshes: SharedRuns<boolean>;
  askedAt: number;
  /** The lists that the next run has to read. */
  readonly wanted: Set<Part>;
  /** The sessions that it has to read first, by their ids. */
  readonly sessions: Map<number, WrittenSession>;
  /** As in `refresh`: the latest that was asked for. */
  since: number;
  progress: number;
  /** Starts the next run. Undefined while a run is under way, and while no client uses the account. */
  timer: NodeJS.Timeout | undefined;
  /** Whether `tick` is running. */
  isTicking: boolean;
  awakening: Promise<boolean> | undefined;
  /** The current run through details, and what stops it when something more urgent has to be read. */
  details: Promise<void>;
  stopDetails(): void;
}

export function createMirroredAccount(options: MirroredAccountOptions): MirroredAccount {
  const { runs, freshnessStore, onChanged } = options;
  const freshness = createAccountFreshness(freshnessStore.read, onChanged);
  const credentials = new Set<Credential>();
  const refreshes = createSharedRuns(() => run(self));
  const self: AccountState = {
    ...options,
    credentials,
    freshness,
    refreshes,
    closing: new AbortController(),
    // Only what is asked of the copy is a use of it.
    askedAt: Number.NEGATIVE_INFINITY,
    wanted: new Set(),
    sessions: new Map(),
    since: Number.NEGATIVE_INFINITY,
    progress: 0,
    timer: undefined,
    isTicking: false,
    awakening: undefined,
    details: Promise.resolve(),
    stopDetails: () => {},
  };
  return {
    id: options.id,
    budget: options.budget,
    activateInTurn: options.withActivationLock,
    freshness,
    skipped: runs.skipped,
    get progress() {
      return self.progress;
    },
    get isUnreachable() {
      return credentials.size === 0;
    },
    touch() {
      self.askedAt = performance.now();
      return startIfDue(self);
    },
    arrival: () => refreshes.current ?? (credentials.size > 0 ? refreshes.begin() : undefined),
    get credential() {
      return newestOf(self);
    },
    noteWrite: (scope) => noteWrite(self, scope),
    refresh(parts = allParts, since = Number.NEGATIVE_INFINITY) {
      want(self, parts);
      self.since = Math.max(self.since, since);
      return refreshes.begin();
    },
    add: (credential) => void credentials.add(credential),
    remove: (credential) => void credentials.delete(credential),
    upstreamFor(credential = newestOf(self), priority, timing) {
      return credential && upstreamWith(self, credential, priority, timing);
    },
    async close() {
      clearTimeout(self.timer);
      self.closing.abort();
      await refreshes.settled();
      await self.details;
    },
  };
}

/** The newest token is the likeliest to be valid. */
const newestOf = ({ credentials }: AccountState) => [...credentials].at(-1);

function upstreamWith(
  self: AccountState,
  credential: Credential,
  priority: Priority,
  timing: Partial<Timing>,
): Upstream {
  const { base, budget, onTokenStatus } = self;
  // A request that a client waits for does not queue behind those of other accounts.
  const inTurn = priority === 'demand' ? undefined : self.inTurn;
  const onUnauthorized = (route: string) =>
    onTokenStatus(credential, route === '/users/me' ? 'invalid' : 'doubtful', performance.now());
  return createUpstream({
    base,
    token: credential.token,
    timing,
    budget,
    priority,
    onUnauthorized,
    ...(inTurn && { inTurn }),
  });
}

function want({ wanted }: AccountState, parts: Iterable<Part>): void {
  for (const part of parts) wanted.add(part);
}

async function noteWrite(self: AccountState, { parts, session }: WriteScope): Promise<void> {
  const { freshness, freshnessStore, refreshes, runs, idle } = self;
  want(self, parts);
  if (session) self.sessions.set(session.id, session);
  freshness.noteWrite();
  const before = freshness.notedWrite;
  if (session) await runs.noteChanged(session.id).catch(self.onFailure);
  const noted = await untilNoted(freshnessStore.noteWrite).catch(self.onFailure);
  if (noted) freshness.noteStoredWrite(noted.writtenAt);
  // A write that another process has forwarded, and not read back, may have changed any list.
  if (noted?.previous !== undefined && noted.previous !== before) want(self, allParts);
  await freshness.ensureLoaded().catch(self.onFailure);
  if (freshness.refreshedAt !== undefined && performance.now() - self.askedAt <= idle) refreshes.begin();
}

/** Reads the lists that are wanted, and returns whether that succeeded. */
async function run(self: AccountState): Promise<boolean> {
  const { freshness, closing, interval } = self;
  if (freshness.refreshedAt === undefined) want(self, allParts);
  // These lists were asked for after the run before had begun.
  if (self.wanted.size === 0) return true;
  self.stopDetails();
  await self.details;
  clearTimeout(self.timer);
  self.timer = undefined;
  const credential = newestOf(self);
  if (!credential || closing.signal.aborted) return false;
  const isPart = self.wanted.size < allParts.length;
  const hasSucceeded = await readWith(self, credential);
  const untilNext = isPart && hasSucceeded ? Math.max(interval - freshness.age, 0) : interval;
  if (!closing.signal.aborted) self.timer = setTimeout(() => tick(self), untilNext).unref();
  return hasSucceeded;
}

/** Reads the lists that are wanted with a token or, if that ends meanwhile, with another of the account. */
async function readWith(self: AccountState, credential: Credential): Promise<boolean> {
  if (await read(self, credential)) return true;
  const next = hasEnded(credential) ? newestOf(self) : undefined;
  return next ? readWith(self, next) : false;
}

const hasEnded = ({ viewer }: Credential) => viewer.ended?.aborted === true;

/** A signal that is aborted when the account is closed, and when the token has ended. */
const endOf = ({ closing }: AccountState, { viewer }: Credential) =>
  AbortSignal.any([closing.signal, ...(viewer.ended ? [viewer.ended] : [])]);

/** @param deadline until when to wait for the run of another process, by `performance.now()`. */
async function read(
  self: AccountState,
  credential: Credential,
  deadline = performance.now() + longestPoll,
): Promise<boolean> {
  const { runs, freshness, closing, timing } = self;
  const priority = freshness.refreshedAt === undefined ? 'arrival' : 'refresh';
  const upstream = upstreamWith(self, credential, priority, timing);
  const signal = endOf(self, credential);
  const parts = [...self.wanted];
  const sessions = [...self.sessions.values()];
  self.wanted.clear();
  self.sessions.clear();
  // Its lists are among those.
  const { notedWrite, refreshedAt } = freshness;
  const advanced = (records: number) => {
    self.progress = records;
  };
  // A run begins by asking whose token it is.
  const askedAt = performance.now();
  try {
    for (const session of sessions) await runs.session(upstream, session);
    const report = await runs.lists(
      upstream,
      signal,
      advanced,
      parts.length < allParts.length ? parts : undefined,
    );
    if (!report) return await awaitOtherRun(self, credential, { parts, refreshedAt, deadline });
    self.onTokenStatus(credential, 'valid', askedAt);
    freshness.set(askedAt, report);
    self.onSuccess();
    await clearWrite(self, report, notedWrite).catch(self.onFailure);
    startDetails(self, credential);
    return true;
  } catch (error) {
    want(self, parts);
    for (const session of sessions) self.sessions.set(session.id, session);
    const isEnd = hasEnded(credential) && !(error instanceof UpstreamError);
    if (closing.signal.aborted || isEnd) return false;
    self.onFailure(error);
    if (error instanceof AnotherAccount) self.onTokenStatus(credential, 'another', askedAt);
    return false;
  }
}

/** Tells other gateways that a run has read writes back: all those before it, or those of this process to the lists that it read. */
async function clearWrite(
  { freshnessStore }: AccountState,
  { began, isPart }: ListsRead,
  notedWrite: number | undefined,
): Promise<void> {
  if (!isPart) await freshnessStore.clearWrite(0, began);
  else if (notedWrite !== undefined) await freshnessStore.clearWrite(notedWrite, notedWrite);
}

/** A run that was not made, since another process had one under way. */
interface YieldedRun {
  readonly parts: readonly Part[];
  /** When the lists were read that were here before. */
  readonly refreshedAt: number | undefined;
  readonly deadline: number;
}

/** Waits for the run of another process. If that has not read the lists when it ends, reads them by a run of our own. */
async function awaitOtherRun(
  self: AccountState,
  credential: Credential,
  { parts, refreshedAt: before, deadline }: YieldedRun,
): Promise<boolean> {
  const { freshness, closing } = self;
  while (performance.now() < deadline) {
    await sleep(pollInterval, undefined, { signal: closing.signal });
    const { isLeased } = await freshness.reload();
    const { refreshedAt } = freshness;
    // A request may have found this out already. The other run may have begun before the write of this process, or before a client
    // asked for fresher data.
    const isRead = refreshedAt !== undefined && refreshedAt !== before && refreshedAt >= self.since;
    if (isRead && !freshness.isOutdated) return true;
    if (isLeased) continue;
    want(self, parts);
    return read(self, credential, deadline);
  }
  want(self, parts);
  return false;
}

function startDetails(self: AccountState, credential: Credential): void {
  const { runs, timing, onFailure } = self;
  const upstream = upstreamWith(self, credential, 'details', timing);
  const stop = new AbortController();
  self.stopDetails = () => stop.abort();
  const signal = AbortSignal.any([stop.signal, endOf(self, credential)]);
  self.details = runs.details(upstream, signal).catch((error: unknown) => {
    if (!signal.aborted) onFailure(error);
  });
}

/** Starts the next run when it is due, unless no client uses the account any more. */
async function tick(self: AccountState): Promise<void> {
  const { freshness, refreshes, closing, credentials, interval, idle } = self;
  self.timer = undefined;
  if (performance.now() - self.askedAt > idle || credentials.size === 0) return self.stopDetails();
  // Another process may have read the lists.
  self.isTicking = true;
  await freshness.reload().catch(self.onFailure);
  self.isTicking = false;
  if (closing.signal.aborted) return;
  const { age } = freshness;
  if (age < interval) self.timer = setTimeout(() => tick(self), interval - age).unref();
  else {
    want(self, allParts);
    await refreshes.begin();
  }
}

/** Starts a run if none is scheduled, unless the account is fresh: another process may refresh it. */
function startIfDue(self: AccountState): Promise<boolean> | undefined {
  const { refreshes, credentials, freshness, timer, isTicking, interval } = self;
  if (timer !== undefined || isTicking || refreshes.current || credentials.size === 0) return self.awakening;
  const { age } = freshness;
  if (age < interval) {
    self.timer = setTimeout(() => tick(self), interval - age).unref();
    return undefined;
  }
  want(self, allParts);
  self.awakening = refreshes.begin().finally(() => {
    self.awakening = undefined;
  });
  return self.awakening;
}
