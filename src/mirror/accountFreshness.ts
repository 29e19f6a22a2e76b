/**
 * How fresh an account is, as far as this process knows: it reads the account, and so may others over the same database.
 * Times here are those of `performance.now()`, which nobody sets.
 */

import type { NotedWrite, StoredFreshness } from './storedFreshness.ts';

/** What a run of this process has read. */
export interface ListsRead {
  /** When the run began, by `performance.now()`. */
  readonly askedAt: number;
  /** The same by the database's clock, in milliseconds since the epoch. */
  readonly began: number;
  /** Whether it has read some of the lists alone. */
  readonly isPart: boolean;
  /** What `writes` was when the run began. */
  readonly writes: number;
  /** What `mark` was when the run began. */
  readonly mark: number | undefined;
}

/** The age, in milliseconds, of what may have any age: a day. */
const unknownAge = 24 * 60 * 60_000;

/** How far ahead of the database's clock, in milliseconds, a time may be without counting as unknown. */
const longestAhead = 5_000;

export type AccountFreshness = ReturnType<typeof createAccountFreshness>;

/** Loads something again once it may have changed. */
function createLoader<Result>(load: () => Promise<Result>) {
  let isCurrent = false;
  /** How often `markStale` was called. */
  let changes = 0;
  let loading: Promise<unknown> | undefined;

  async function reload(): Promise<Result> {
    const before = changes;
    const result = await load();
    // A change that came meanwhile may not be in the result.
    isCurrent = before === changes;
    return result;
  }

  return {
    reload,
    /** Loads it if that was not done since it may have changed. */
    async ensureLoaded(): Promise<void> {
      // A load that was under way may have begun before the change; a second one has not. More would chase every change.
      for (let round = 0; round < 2 && !isCurrent; round++) {
        loading ??= reload().finally(() => {
          loading = undefined;
        });
        await loading;
      }
    },
    /** Takes note that it may have changed. */
    markStale(): void {
      changes++;
      isCurrent = false;
    },
  };
}

/**
 * @param read what the database says.
 * @param onChanged called when lists were read, by whichever process: rows may have changed here.
 */
export function createAccountFreshness(read: () => Promise<StoredFreshness>, onChanged: () => void) {
  let refreshedAt: number | undefined;
  let stored: Pick<StoredFreshness, 'refreshedAt' | 'mark'> = { refreshedAt: undefined, mark: undefined };
  /** How many writes this process has forwarded, how many of them are in the database, and how many were read back. */
  const own = { forwarded: 0, noted: 0, read: 0 };
  /** The mark of the last of them. */
  let ownMark: number | undefined;

  const isWrittenElsewhere = () => stored.mark !== undefined && stored.mark !== ownMark;

  /** Reads the database, where another process may have noted more. Returns whether a run reads lists. */
  const loader = createLoader(async (): Promise<boolean> => {
    const { noted } = own;
    const askedAt = performance.now();
    const { age, isLeased, ...found } = await read();
    const hasChanged = found.refreshedAt !== stored.refreshedAt;
    stored = found;
    if (found.mark === undefined) own.read = Math.max(own.read, noted);
    if (hasChanged) {
      refreshedAt = found.refreshedAt === undefined ? undefined : timeAgo(askedAt, age);
      onChanged();
    }
    return isLeased;
  });

  return {
    /** When the lists that are here were read; undefined until all of them were. */
    get refreshedAt() {
      return refreshedAt;
    },
    /** How old, in milliseconds, what is here may be: infinitely, if nothing is. */
    get age() {
      return performance.now() - (refreshedAt ?? Number.NEGATIVE_INFINITY);
    },
    /** Whether a client has written something upstream, through any gateway, that no run has read yet. */
    get isOutdated() {
      return own.read < own.forwarded || isWrittenElsewhere();
    },
    /** The same of a write through another process alone: it may have changed any list. */
    get isWrittenElsewhere() {
      return isWrittenElsewhere();
    },
    /** How many writes this process has forwarded. */
    get writes() {
      return own.forwarded;
    },
    /** The mark of the last write in the database that was not read back. */
    get mark() {
      return stored.mark;
    },
    /**
     * Notes a write, first here and then in the database.
     * @returns whether another process has forwarded a write before it that was not read back.
     */
    async noteWrite(note: () => Promise<NotedWrite>): Promise<boolean> {
      const count = ++own.forwarded;
      const { mark, previous } = await note();
      own.noted = Math.max(own.noted, count);
      const isOthers = previous !== undefined && previous !== ownMark;
      ownMark = mark;
      return isOthers;
    },
    /** Notes what a run has read. */
    set({ askedAt, began, isPart, writes, mark }: ListsRead): void {
      // Another process may have brought what the run has found here, and its announcement may be late.
      onChanged();
      own.read = Math.max(own.read, writes);
      if (stored.mark === mark) stored = { ...stored, mark: undefined };
      if (isPart) return;
      refreshedAt = askedAt;
      stored = { ...stored, refreshedAt: began };
    },
    ...loader,
  };
}

/** A time of an age. One that is far ahead says nothing: then what is here counts as old. */
const timeAgo = (now: number, age: number) => now - (age < -longestAhead ? unknownAge : Math.max(age, 0));
