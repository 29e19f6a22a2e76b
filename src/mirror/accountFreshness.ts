/**
 * How fresh an account is, as far as this process knows: it reads the account, and so may others over the same database.
 * Times here are those of this process's clock, but for those that are compared with the database's alone.
 */

import type { StoredFreshness } from './storedFreshness.ts';

/** What a run has read. */
export interface ListsRead {
  /** When the run began, by the database's clock, in milliseconds since the epoch. */
  readonly began: number;
  /** Whether rows here have changed by it. */
  readonly hasChanges: boolean;
  /** Whether it has read some of the lists alone. */
  readonly isPart: boolean;
}

export interface AccountFreshness {
  /** When the lists that are here were read, in milliseconds since the epoch; undefined until all of them were. */
  readonly refreshedAt: number | undefined;
  /** How old, in milliseconds, what is here may be: since the epoch, if nothing is. */
  readonly age: number;
  /** Whether a client has written something upstream, through any gateway, that no run has read yet. */
  readonly isOutdated: boolean;
  /** The same of what a client of this gateway was shown as the upstream has it. */
  readonly isBehind: boolean;
  /** The last write that this process has noted in the database. */
  readonly notedWrite: number | undefined;
  /** Notes that a client has written something upstream. */
  noteWrite(): void;
  /** Notes that this process has noted a write in the database. */
  noteStoredWrite(writtenAt: number): void;
  /** Notes that clients are shown what the upstream has. */
  noteShown(): void;
  /** Notes what a run has read. @param askedAt when it began, in milliseconds since the epoch. */
  set(askedAt: number, read: ListsRead): void;
  /** Reads the database, where another process may have noted more. `hasChanged` says whether lists were read since. */
  reload(): Promise<{ readonly hasChanged: boolean; readonly isLeased: boolean }>;
  /** Reads the database if that was not done since it may have changed. */
  ensureLoaded(): Promise<void>;
  /** Takes note that the database may say otherwise than is known here. */
  markStale(): void;
}

/** How far ahead of the database's clock, in milliseconds, a time may be that was noted by another clock. */
const longestAhead = 5_000;

/**
 * @param read what the database says.
 * @param onChanged told of what has changed here, whoever brought it.
 */
export function createAccountFreshness(
  read: () => Promise<StoredFreshness>,
  onChanged: () => void,
): AccountFreshness {
  let refreshedAt: number | undefined;
  /** When something was last written, shown and read. */
  const last = { written: 0, shown: 0, read: 0 };
  /** As the database has them, by its clock. */
  let stored: Pick<StoredFreshness, 'refreshedAt' | 'writtenAt'> = {
    refreshedAt: undefined,
    writtenAt: undefined,
  };
  let notedWrite: number | undefined;
  let isKnown = false;
  let doubts = 0;
  let loading: Promise<unknown> | undefined;

  async function reload() {
    const before = doubts;
    const askedAt = Date.now();
    const { age, isLeased, ...found } = await read();
    // What was read before a doubt came may be what is doubted.
    isKnown = before === doubts;
    const hasChanged = found.refreshedAt !== stored.refreshedAt;
    stored = found;
    if (hasChanged) {
      refreshedAt = found.refreshedAt === undefined ? undefined : timeAgo(askedAt, age);
      onChanged();
    }
    return { hasChanged, isLeased };
  }

  const isBefore = (time: number) => Math.max(refreshedAt ?? 0, last.read) < time;

  /** Whether another process has relayed a write that no run has read. This one's own are those of `last`. */
  function isWrittenElsewhere(): boolean {
    const { writtenAt } = stored;
    return writtenAt !== undefined && writtenAt !== notedWrite && writtenAt > (stored.refreshedAt ?? 0);
  }

  return {
    get refreshedAt() {
      return refreshedAt;
    },
    get age() {
      return Math.max(Date.now() - (refreshedAt ?? 0), 0);
    },
    get isOutdated() {
      return isBefore(last.written) || isWrittenElsewhere();
    },
    get isBehind() {
      return isBefore(Math.max(last.written, last.shown)) || isWrittenElsewhere();
    },
    get notedWrite() {
      return notedWrite;
    },
    noteWrite: () => void Object.assign(last, { written: Date.now() }),
    noteStoredWrite(writtenAt) {
      notedWrite = Math.max(notedWrite ?? 0, writtenAt);
    },
    noteShown: () => void Object.assign(last, { shown: Date.now() }),
    set(askedAt, { began, hasChanges, isPart }) {
      if (hasChanges || refreshedAt === undefined) onChanged();
      // What was written before is among it.
      last.read = askedAt;
      if (isPart) return;
      isKnown = true;
      refreshedAt = askedAt;
      stored = { ...stored, refreshedAt: began };
    },
    reload,
    async ensureLoaded() {
      // A reading that was under way may have begun before the doubt, and a second has not; more would chase every change.
      for (let round = 0; round < 2 && !isKnown; round++) {
        loading ??= reload().finally(() => {
          loading = undefined;
        });
        await loading;
      }
    },
    markStale() {
      doubts++;
      isKnown = false;
    },
  };
}

/** A time of an age. One that is far ahead says nothing: what is here may be of any age. */
const timeAgo = (now: number, age: number) => (age < -longestAhead ? 0 : now - Math.max(age, 0));
