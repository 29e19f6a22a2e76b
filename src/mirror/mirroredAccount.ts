/** One account of the mirror in this process: who can read it upstream, and what keeps it fresh while somebody asks. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { LimitFunction } from 'p-limit';
import { type AccountFreshness, createAccountFreshness, type ListsRead } from './accountFreshness.ts';
import type { WithActivationLock } from './activationLock.ts';
import type { Budget, Priority } from './budget.ts';
import { createFlights, type Flights } from './flights.ts';
import { allParts, type Part } from './pullAccount.ts';
import type { FreshnessStore } from './storedFreshness.ts';
import { AnotherAccount, createUpstream, type Timing, type Upstream, UpstreamError } from './upstream.ts';
import type { Credential, TokenStatus } from './upstreamTokens.ts';

/** What is done to an account, each by one run at a time in all processes. */
export interface AccountRuns {
  /**
   * Reads lists; undefined while another process does.
   * @param advanced told how many records were read.
   * @param parts which, if not all.
   */
  lists(
    upstream: Upstream,
    signal: AbortSignal,
    advanced: (records: number) => void,
    parts: readonly Part[] | undefined,
  ): Promise<ListsRead | undefined>;
  /** Reads details that are still to be read, until there are none or the signal is aborted. */
  details(upstream: Upstream, signal: AbortSignal): Promise<void>;
  /** How many records the upstream has that could not be understood, or are not the account's. */
  skipped(): number;
}

export interface MirroredAccountOptions {
  readonly id: number;
  readonly base: string;
  readonly timing: Partial<Timing>;
  readonly budget: Budget;
  readonly withActivationLock: WithActivationLock;
  /** Has the requests of all accounts that nobody waits for take turns. */
  readonly inTurn: LimitFunction;
  readonly runs: AccountRuns;
  readonly freshnessStore: FreshnessStore;
  /** From the end of a run to the start of the next, in milliseconds. */
  readonly interval: number;
  /** For how long after somebody asked it is kept fresh, in milliseconds. */
  readonly idle: number;
  /** Told of what has changed here, whoever brought it. */
  onChanged(): void;
  /** Told how each run went. */
  onSuccess(): void;
  onFailure(error: unknown): void;
  /**
   * Told of what the upstream says to the token of a run.
   * @param askedAt when the request was sent, in milliseconds since the epoch.
   */
  onTokenStatus(credential: Credential, said: TokenStatus, askedAt: number): void;
}

export interface MirroredAccount {
  readonly id: number;
  readonly budget: Budget;
  /** Has its activations take turns. */
  readonly activateInTurn: WithActivationLock;
  readonly freshness: AccountFreshness;
  /** How many records of the upstream are left out. */
  skipped(): number;
  /** How many records the first run has read so far. */
  readonly progress: number;
  /** Whether nobody here could read it upstream. */
  readonly isUnreachable: boolean;
  /** Notes that somebody asks about it. Returns the run with which it awakes if nobody had for a while. */
  touch(): Promise<boolean> | undefined;
  /** Settles when the run that is under way is over, or the next if none is; undefined if none will be. */
  arrival(): Promise<boolean> | undefined;
  /** Notes, for all gateways, that a client has written upstream what these lists have. The next run reads them. */
  noteWrite(parts: readonly Part[]): Promise<void>;
  /** Reads the lists by a run that begins from now on: these at least, if not all. Returns whether that succeeded. */
  refresh(parts?: readonly Part[]): Promise<boolean>;
  add(credential: Credential): void;
  remove(credential: Credential): void;
  /** A client of the upstream for what a viewer asks, with their own token or another of the same account. */
  upstreamFor(
    credential: Credential | undefined,
    priority: Priority,
    timing: Partial<Timing>,
  ): Upstream | undefined;
  close(): Promise<void>;
}

/** How often, in milliseconds, it is asked whether another process is done, and how long that is waited for. */
const pollInterval = 250;
const longestPoll = 10_000;

/** What the functions below share. */
interface AccountState extends MirroredAccountOptions {
  readonly credentials: Set<Credential>;
  readonly freshness: AccountFreshness;
  readonly closing: AbortController;
  flights: Flights;
  askedAt: number;
  /** What is to be read by a run that begins from now on. */
  readonly wanted: Set<Part>;
  progress: number;
  /** Begins the next run; undefined while one is under way, and while nobody asks. */
  timer: NodeJS.Timeout | undefined;
  /** Whether it is being found out whether the next run is due. */
  isTicking: boolean;
  awakening: Promise<boolean> | undefined;
  /** The reading of details, and what has it make way for whatever else there is to do. */
  details: Promise<void>;
  stopDetails(): void;
}

export function createMirroredAccount(options: MirroredAccountOptions): MirroredAccount {
  const { runs, freshnessStore, onChanged } = options;
  const freshness = createAccountFreshness(freshnessStore.read, onChanged);
  const credentials = new Set<Credential>();
  const flights = createFlights(() => run(self));
  const self: AccountState = {
    ...options,
    credentials,
    freshness,
    flights,
    closing: new AbortController(),
    askedAt: Date.now(),
    wanted: new Set(),
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
      self.askedAt = Date.now();
      return startIfDue(self);
    },
    arrival: () => flights.current ?? (credentials.size > 0 ? flights.begin() : undefined),
    noteWrite: (parts) => noteWrite(self, parts),
    refresh(parts = allParts) {
      want(self, parts);
      return flights.begin();
    },
    add: (credential) => void credentials.add(credential),
    remove: (credential) => void credentials.delete(credential),
    upstreamFor(credential = newestOf(self), priority, timing) {
      return credential && upstreamWith(self, credential, priority, timing);
    },
    async close() {
      clearTimeout(self.timer);
      self.closing.abort();
      await flights.settled();
      await self.details;
    },
  };
}

/** The token that came last is the likeliest to be valid. */
const newestOf = ({ credentials }: AccountState) => [...credentials].at(-1);

function upstreamWith(
  self: AccountState,
  credential: Credential,
  priority: Priority,
  timing: Partial<Timing>,
): Upstream {
  const { base, budget, onTokenStatus } = self;
  // What somebody waits for does not wait for others.
  const inTurn = priority === 'demand' ? undefined : self.inTurn;
  const onRefused = (route: string) =>
    onTokenStatus(credential, route === '/users/me' ? 'invalid' : 'doubtful', Date.now());
  return createUpstream({
    base,
    token: credential.token,
    timing,
    budget,
    priority,
    onRefused,
    ...(inTurn && { inTurn }),
  });
}

function want({ wanted }: AccountState, parts: Iterable<Part>): void {
  for (const part of parts) wanted.add(part);
}

async function noteWrite(self: AccountState, parts: readonly Part[]): Promise<void> {
  const { freshness, freshnessStore } = self;
  want(self, parts);
  freshness.noteWrite();
  const before = freshness.notedWrite;
  const noted = await freshnessStore.noteWrite().catch(self.onFailure);
  if (!noted) return;
  freshness.noteStoredWrite(noted.writtenAt);
  // What another process has relayed, and not read back, may be in any list.
  if (noted.previous !== undefined && noted.previous !== before) want(self, allParts);
}

/** Reads the lists that are wanted, and returns whether that succeeded. */
async function run(self: AccountState): Promise<boolean> {
  const { freshness, closing, interval } = self;
  const isFirst = freshness.refreshedAt === undefined;
  if (isFirst) want(self, allParts);
  // The run before had not begun yet when they were asked for.
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
  // What was relayed meanwhile may be newer.
  if (isFirst && hasSucceeded && freshness.isBehind) {
    want(self, allParts);
    self.flights.begin();
  }
  return hasSucceeded;
}

/** Reads the lists that are wanted with a token or, if that ends meanwhile, with another of the account. */
async function readWith(self: AccountState, credential: Credential): Promise<boolean> {
  if (await read(self, credential)) return true;
  const next = hasEnded(credential) ? newestOf(self) : undefined;
  return next ? readWith(self, next) : false;
}

const hasEnded = ({ viewer }: Credential) => viewer.ended?.aborted === true;

/** Aborted when the account is let go of, and when the token has ended. */
const endOf = ({ closing }: AccountState, { viewer }: Credential) =>
  AbortSignal.any([closing.signal, ...(viewer.ended ? [viewer.ended] : [])]);

/** @param deadline until when the run of another process is waited for, by `performance.now()`. */
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
  self.wanted.clear();
  // Its lists are among those.
  const { notedWrite } = freshness;
  const advanced = (records: number) => {
    self.progress = records;
  };
  // A run asks first whose token it is.
  const askedAt = Date.now();
  try {
    const report = await runs.lists(
      upstream,
      signal,
      advanced,
      parts.length < allParts.length ? parts : undefined,
    );
    if (!report) return await awaitOtherRun(self, credential, parts, deadline);
    self.onTokenStatus(credential, 'valid', askedAt);
    freshness.set(askedAt, report);
    self.onSuccess();
    await clearWrite(self, report, notedWrite).catch(self.onFailure);
    startDetails(self, credential);
    return true;
  } catch (error) {
    want(self, parts);
    const isEnd = hasEnded(credential) && !(error instanceof UpstreamError);
    if (closing.signal.aborted || isEnd) return false;
    self.onFailure(error);
    if (error instanceof AnotherAccount) self.onTokenStatus(credential, 'another', askedAt);
    return false;
  }
}

/** Tells other gateways what a run has read back: all that was written before it, or what was written here to some lists. */
async function clearWrite(
  { freshnessStore }: AccountState,
  { began, isPart }: ListsRead,
  notedWrite: number | undefined,
): Promise<void> {
  if (!isPart) await freshnessStore.clearWrite(0, began);
  else if (notedWrite !== undefined) await freshnessStore.clearWrite(notedWrite, notedWrite);
}

/** Waits for the run of another process, and reads the lists by a run of its own as soon as that is over and has not read them. */
async function awaitOtherRun(
  self: AccountState,
  credential: Credential,
  parts: readonly Part[],
  deadline: number,
): Promise<boolean> {
  const { freshness, closing } = self;
  while (performance.now() < deadline) {
    await sleep(pollInterval, undefined, { signal: closing.signal });
    const { hasChanged, isLeased } = await freshness.reload();
    // It may have begun before what was written here.
    if (hasChanged && freshness.refreshedAt !== undefined && !freshness.isOutdated) return true;
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

/** Begins the next run when it is due, unless nobody asks any more. */
async function tick(self: AccountState): Promise<void> {
  const { freshness, flights, closing, credentials, interval, idle } = self;
  self.timer = undefined;
  if (Date.now() - self.askedAt > idle || credentials.size === 0) return self.stopDetails();
  // Another process may have done it.
  self.isTicking = true;
  await freshness.reload().catch(self.onFailure);
  self.isTicking = false;
  if (closing.signal.aborted) return;
  const { age } = freshness;
  if (age < interval) self.timer = setTimeout(() => tick(self), interval - age).unref();
  else {
    want(self, allParts);
    await flights.begin();
  }
}

/** Begins a run where none is to come by itself, unless what is here is fresh: another process may see to it. */
function startIfDue(self: AccountState): Promise<boolean> | undefined {
  const { flights, credentials, freshness, timer, isTicking, interval } = self;
  if (timer !== undefined || isTicking || flights.current || credentials.size === 0) return self.awakening;
  const { age } = freshness;
  if (age < interval) {
    self.timer = setTimeout(() => tick(self), interval - age).unref();
    return undefined;
  }
  want(self, allParts);
  self.awakening = flights.begin().finally(() => {
    self.awakening = undefined;
  });
  return self.awakening;
}
