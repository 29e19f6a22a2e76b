/** One account of the mirror in this process: who can read it upstream, how fresh it is, and what keeps it fresh. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { InTurn } from './activationTurns.ts';
import type { Budget, Priority } from './budget.ts';
import type { Credential } from './tokens.ts';
import { AnotherAccount, createUpstream, type Timing, Unauthorized, type Upstream } from './upstream.ts';

/** What a run through the lists has found. */
export interface ListsReport {
  /** When it began, in milliseconds since the epoch. */
  readonly began: number;
  readonly hasChanges: boolean;
  /** How many records the upstream has that could not be understood, or are not the account's. */
  readonly skipped: number;
}

/** What is done to an account, each by one run at a time in all processes. */
export interface AccountRuns {
  /** Reads all lists; undefined while another process does. @param advanced told how many records were read. */
  lists(
    upstream: Upstream,
    signal: AbortSignal,
    advanced: (records: number) => void,
  ): Promise<ListsReport | undefined>;
  /** Reads details that are still to be read, until there are none or the signal is aborted. */
  details(upstream: Upstream, signal: AbortSignal): Promise<void>;
  /** When the lists that are here were read, in milliseconds since the epoch, as the database has it. */
  refreshedAt(): Promise<number | undefined>;
}

export interface MirroredAccountOptions {
  readonly id: number;
  readonly base: string;
  readonly timing: Partial<Timing>;
  readonly budget: Budget;
  readonly activateInTurn: InTurn;
  readonly runs: AccountRuns;
  /** From the end of a run to the start of the next, in milliseconds. */
  readonly interval: number;
  /** For how long after somebody asked it is kept fresh, in milliseconds. */
  readonly idle: number;
  /** Told of what has changed here, whoever brought it. */
  onChanged(): void;
  /** Told how each run went. */
  onSuccess(): void;
  onFailure(error: unknown): void;
  /** Told of what the upstream says to the token of a run. */
  onSaid(credential: Credential, said: 'valid' | 'invalid' | 'another'): void;
}

export interface MirroredAccount {
  readonly id: number;
  readonly budget: Budget;
  /** Has its activations take turns. */
  readonly activateInTurn: InTurn;
  /** When the lists that are here were read, in milliseconds since the epoch; undefined until all of them were. */
  readonly refreshedAt: number | undefined;
  /** How many records upstream the last run left out. */
  readonly skipped: number;
  /** Whether something was written upstream, through here, that no run has read yet. */
  readonly isOutdated: boolean;
  /** Notes that something was written upstream. */
  noteWrite(): void;
  /** How many records the first run has read so far. */
  readonly progress: number;
  /** Whether nobody here could read it upstream. */
  readonly isUnreachable: boolean;
  /** Notes that somebody asks about it. Returns the run with which it awakes if nobody had for a while. */
  touch(): Promise<boolean> | undefined;
  /** Settles when the run that is under way is over, or the next if none is; undefined if none will be. */
  arrival(): Promise<boolean> | undefined;
  /** Reads the lists by a run that begins from now on. Returns whether that succeeded. */
  refresh(): Promise<boolean>;
  /** Takes note that the database may say otherwise than is known here. */
  forgetWhen(): void;
  /** Asks the database how fresh it is, if that is not known here. */
  learnWhen(): Promise<void>;
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

export function createMirroredAccount(options: MirroredAccountOptions): MirroredAccount {
  const { id, base, timing, budget, runs, interval, idle, onChanged, onSuccess, onFailure, onSaid } = options;
  const credentials = new Set<Credential>();
  const closing = new AbortController();
  let refreshedAt: number | undefined;
  let isKnown = false;
  let askedAt = Date.now();
  let writtenAt = 0;
  let skipped = 0;
  let progress = 0;
  let timer: NodeJS.Timeout | undefined;
  /** The run that has begun, and the one that begins when it is over. */
  let current: Promise<boolean> | undefined;
  let next: Promise<boolean> | undefined;
  let awakening: Promise<boolean> | undefined;
  /** Ends the reading of details, which makes way for whatever else there is to do. */
  let stopDetails = () => {};
  let details: Promise<void> = Promise.resolve();

  /** The one that came last is the likeliest to be valid. */
  const newest = () => [...credentials].at(-1);
  const isAsleep = () => timer === undefined && current === undefined;

  function upstreamFor(
    preferred: Credential | undefined,
    priority: Priority,
    given: Partial<Timing>,
  ): Upstream | undefined {
    const token = (preferred ?? newest())?.token;
    return token === undefined ? undefined : createUpstream({ base, token, timing: given, budget, priority });
  }

  function adopt(time: number | undefined): void {
    isKnown = true;
    if (time === undefined || time === refreshedAt) return;
    refreshedAt = time;
    onChanged();
  }

  /** Waits for the run of another process to be over. */
  async function follow(): Promise<boolean> {
    const before = refreshedAt;
    for (let waited = 0; waited < longestPoll && !closing.signal.aborted; waited += pollInterval) {
      await sleep(pollInterval, undefined, { signal: closing.signal });
      adopt(await runs.refreshedAt());
      if (refreshedAt !== before) return true;
    }
    return false;
  }

  async function run(): Promise<boolean> {
    stopDetails();
    await details;
    clearTimeout(timer);
    const credential = newest();
    const upstream = upstreamFor(credential, 'refresh', timing);
    if (!credential || !upstream) {
      timer = undefined;
      return false;
    }
    try {
      const report = await runs.lists(upstream, closing.signal, (records) => {
        progress = records;
      });
      if (!report) return await follow();
      onSaid(credential, 'valid');
      isKnown = true;
      if (report.hasChanges || refreshedAt === undefined) onChanged();
      refreshedAt = report.began;
      skipped = report.skipped;
      onSuccess();
      startDetails();
      return true;
    } catch (error) {
      if (closing.signal.aborted) return false;
      onFailure(error);
      if (error instanceof Unauthorized) onSaid(credential, 'invalid');
      if (error instanceof AnotherAccount) onSaid(credential, 'another');
      return false;
    } finally {
      timer = closing.signal.aborted ? undefined : setTimeout(tick, interval).unref();
    }
  }

  function startDetails(): void {
    const upstream = upstreamFor(undefined, 'details', timing);
    if (!upstream) return;
    const stop = new AbortController();
    stopDetails = () => stop.abort();
    const signal = AbortSignal.any([stop.signal, closing.signal]);
    details = runs.details(upstream, signal).catch((error: unknown) => {
      if (!signal.aborted) onFailure(error);
    });
  }

  function begin(): Promise<boolean> {
    const running = run().finally(() => {
      if (current === running) current = undefined;
    });
    current = running;
    return running;
  }

  function refresh(): Promise<boolean> {
    if (!current) return begin();
    next ??= current.then(() => {
      next = undefined;
      return begin();
    });
    return next;
  }

  async function tick(): Promise<void> {
    timer = undefined;
    if (Date.now() - askedAt > idle || credentials.size === 0) {
      stopDetails();
      return;
    }
    try {
      // Another process may have done it.
      adopt(await runs.refreshedAt());
    } catch (error) {
      onFailure(error);
    }
    const age = Date.now() - (refreshedAt ?? 0);
    if (closing.signal.aborted) return;
    if (age < interval) timer = setTimeout(tick, interval - age).unref();
    else await refresh();
  }

  function awake(): Promise<boolean> | undefined {
    if (!isAsleep() || credentials.size === 0) return awakening;
    awakening = refresh().finally(() => {
      awakening = undefined;
    });
    return awakening;
  }

  return {
    id,
    budget,
    activateInTurn: options.activateInTurn,
    get refreshedAt() {
      return refreshedAt;
    },
    get skipped() {
      return skipped;
    },
    get isOutdated() {
      return (refreshedAt ?? 0) < writtenAt;
    },
    noteWrite() {
      writtenAt = Date.now();
    },
    get progress() {
      return progress;
    },
    get isUnreachable() {
      return credentials.size === 0;
    },
    touch() {
      askedAt = Date.now();
      return awake();
    },
    arrival: () => current ?? (credentials.size > 0 ? refresh() : undefined),
    refresh,
    forgetWhen() {
      isKnown = false;
    },
    async learnWhen() {
      if (isKnown) return;
      isKnown = true;
      const time = await runs.refreshedAt();
      if (time === undefined) refreshedAt = undefined;
      else adopt(time);
    },
    add(credential) {
      credentials.add(credential);
    },
    remove(credential) {
      credentials.delete(credential);
    },
    upstreamFor,
    async close() {
      clearTimeout(timer);
      closing.abort();
      await Promise.allSettled([current, next, details]);
    },
  };
}
