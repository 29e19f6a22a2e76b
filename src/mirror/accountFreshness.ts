/**
 * How fresh an account is, as far as this process knows: it reads the account, and so may others over the same database.
 * Times here are those of `performance.now()`, which nobody sets, but for those that are compared with the database's alone.
 */

import type { StoredFreshness } from './storedFreshness.ts';

/** What a run has read. */
export interface ListsRead {
  /** When the run began, by the database's clock, in milliseconds since the epoch. */
  readonly began: number;
  /** Whether it has read some of the lists alone. */
  readonly isPart: boolean;
}

export interface AccountFreshness {
  /** When the lists that are here were read, by `performance.now()`; undefined until all of them were. */
  readonly refreshedAt: number | undefined;
  /** How old, in milliseconds, what is here may be: infinitely, if nothing is. */
  readonly age: number;
  /** Whether a client has written something upstream, through any gateway, that no run has read yet. */
  readonly isOutdated: boolean;
  /** The same of a write through another process alone: it may have changed any list. */
  readonly isWrittenElsewhere: boolean;
  /** The last write that this process has noted in the database. */
  readonly notedWrite: number | undefined;
  /** Notes that a client has written something upstream. */
  noteWrite(): void;
  /** Notes that this process has noted a write in the database. */
  noteStoredWrite(writtenAt: number): void;
  /** Notes what a run has read. @param askedAt when it began, by `performance.now()`. */
  set(askedAt: number, read: ListsRead): void;
  /** Reads the database, where another process may have noted more. */
  reload(): Promise<Pick<StoredFreshness, 'isLeased'>>;
  /** Reads the database if that was not done since it may have changed. */
  ensureLoaded(): Promise<void>;
  /** Takes note that the database may say otherwise than is known here. */
  markStale(): void;
}

/** The age, in milliseconds, of what may have any age: a day. */
const unknownAge = 24 * 60 * 60_000;

/** How far ahead of the database's clock, in milliseconds, a time may be that was noted by another clock. */
const longestAhead = 5_000;

/**
 * What the database says of an account, read again once it may have changed.
 * @param onRefreshed told when the lists were read, by this process's clock, if another process has read them.
 */
function createStoredState(
  read: () => Promise<StoredFreshness>,
  onRefreshed: (refreshedAt: number | undefined) => void,
) {
  /** By the database's clock. */
  let stored: Pick<StoredFreshness, 'refreshedAt' | 'writtenAt'> = {
    refreshedAt: undefined,
    writtenAt: undefined,
  };
  let isCurrent = false;
  /** How often `markStale` was called. */
  let changes = 0;
  let loading: Promise<unknown> | undefined;

  async function reload() {
    const before = changes;
    const askedAt = performance.now();
    const { age, isLeased, ...found } = await read();
    // A change that came while the database was read may not be in what was read.
    isCurrent = before === changes;
    const hasChanged = found.refreshedAt !== stored.refreshedAt;
    stored = found;
    if (hasChanged) onRefreshed(found.refreshedAt === undefined ? undefined : timeAgo(askedAt, age));
    return { isLeased };
  }

  return {
    get: () => stored,
    /** Sets when this process has read all lists. What else the database says may have changed meanwhile. */
    setRefreshed(refreshedAt: number): void {
      stored = { ...stored, refreshedAt };
    },
    reload,
    async ensureLoaded(): Promise<void> {
      // A read that was under way may have begun before the change; a second one has not. More would chase every change.
      for (let round = 0; round < 2 && !isCurrent; round++) {
        loading ??= reload().finally(() => {
          loading = undefined;
        });
        await loading;
      }
    },
    markStale(): void {
      changes++;
      isCurrent = false;
    },
  };
}

/**
 * @param read what the database says.
 * @param onChanged told when lists were read, by whichever process: rows may have changed here.
 */
export function createAccountFreshness(
  read: () => Promise<StoredFreshness>,
  onChanged: () => void,
): AccountFreshness {
  let refreshedAt: number | undefined;
  /** When this process last wrote and read something, by its own clock. */
  const last = { written: Number.NEGATIVE_INFINITY, read: Number.NEGATIVE_INFINITY };
  let notedWrite: number | undefined;
  const stored = createStoredState(read, (time) => {
    refreshedAt = time;
    onChanged();
  });

  /** Whether another process has forwarded a write that no run has read. This one's own are those of `last`. */
  function isWrittenElsewhere(): boolean {
    const { writtenAt, refreshedAt: readAt = 0 } = stored.get();
    return writtenAt !== undefined && writtenAt !== notedWrite && writtenAt > readAt;
  }

  return {
    get refreshedAt() {
      return refreshedAt;
    },
    get age() {
      return performance.now() - (refreshedAt ?? Number.NEGATIVE_INFINITY);
    },
    get isOutdated() {
      return Math.max(refreshedAt ?? last.read, last.read) < last.written || isWrittenElsewhere();
    },
    get isWrittenElsewhere() {
      return isWrittenElsewhere();
    },
    get notedWrite() {
      return notedWrite;
    },
    noteWrite: () => void Object.assign(last, { written: performance.now() }),
    noteStoredWrite(writtenAt) {
      notedWrite = Math.max(notedWrite ?? 0, writtenAt);
    },
    set(askedAt, { began, isPart }) {
      // Another process may have brought what the run has found here, and its announcement may be late.
      onChanged();
      // The run has read what was written before it began.
      last.read = askedAt;
      if (isPart) return;
      refreshedAt = askedAt;
      stored.setRefreshed(began);
    },
    reload: stored.reload,
    ensureLoaded: stored.ensureLoaded,
    markStale: stored.markStale,
  };
}

/** A time of an age. One that is far ahead says nothing: then what is here counts as old. */
const timeAgo = (now: number, age: number) => now - (age < -longestAhead ? unknownAge : Math.max(age, 0));
