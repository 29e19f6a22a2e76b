/**
 * How fresh an account is, as far as this process knows: other processes over the same database may read the account as well.
 * Times here are those of `performance.now()`, a clock that nobody can set.
 */

import { createSharedRuns } from '../../../database/waiting.ts';
import { allParts, type Part } from './pull.ts';
import type { FreshnessStore, StoredFreshness } from './storedFreshness.ts';

export interface WriteScope {
  readonly parts: readonly Part[];
  /** The id of the session that it has changed or deleted. */
  readonly session?: number | undefined;
}

/** The age, in milliseconds, that counts for lists whose age is unknown, since the clock of the database was set back: a day. */
const unknownAge = 24 * 60 * 60_000;

export type AccountFreshness = ReturnType<typeof createAccountFreshness>;

/** Loads something again once it may have changed. */
function createLoader<Result>(load: () => Promise<Result>) {
  let isCurrent = false;
  const loads = createSharedRuns(async () => {
    isCurrent = true;
    return load().catch((error: unknown) => {
      isCurrent = false;
      throw error;
    });
  });
  return {
    reload: loads.begin,
    /** Loads it, unless that was done since it may last have changed. */
    ensureLoaded: async () => void (await (isCurrent ? loads.current : loads.begin())),
    markStale(): void {
      isCurrent = false;
    },
  };
}

/** @param onChanged called when any process has read lists: rows may have changed. */
export function createAccountFreshness(store: FreshnessStore, onChanged: () => void) {
  let refreshedAt: number | undefined;
  let stored: Pick<StoredFreshness, 'refreshedAt' | 'mark'> = { refreshedAt: undefined, mark: undefined };
  /** Writes through this process that are not in the database, or not yet. */
  const unnoted = new Set<object>();
  /** The mark of the last write through this process, and the lists that this process has changed since they were read. */
  let own: { mark: number | undefined; parts: readonly Part[] } = { mark: undefined, parts: [] };

  /** Reads the state in the database, which other processes change as well. Returns whether a run reads lists. */
  const loader = createLoader(async (): Promise<boolean> => {
    const askedAt = performance.now();
    const { age, isLeased, ...found } = await store.read();
    const isSame = found.refreshedAt === stored.refreshedAt;
    stored = found;
    if (isSame) return isLeased;
    refreshedAt = found.refreshedAt && askedAt - (age < 0 ? unknownAge : age);
    onChanged();
    return isLeased;
  });

  return {
    /** When all lists were last read; undefined before the first time. */
    get refreshedAt() {
      return refreshedAt;
    },
    /** How old, in milliseconds, the rows may be; infinite before the first read. */
    get age() {
      return performance.now() - (refreshedAt ?? Number.NEGATIVE_INFINITY);
    },
    /** Whether a client has written something upstream, through any gateway, that no run has read yet. */
    get isOutdated() {
      return unnoted.size > 0 || stored.mark !== undefined;
    },
    ...loader,
    /** Notes a write, first here and then in the database. */
    async noteWrite({ parts, session }: WriteScope): Promise<void> {
      const write = {};
      unnoted.add(write);
      const { mark, previous } = await store.storeWrite(session);
      const before = previous === undefined ? [] : previous === own.mark ? own.parts : allParts;
      own = { mark, parts: [...new Set([...before, ...parts])] };
      // A read in flight may have begun before the write.
      await loader.reload();
      unnoted.delete(write);
    },
    /**
     * Begins a run. Returns the lists that it has to read, the mark of the last write, and a function to call after they are read.
     * @param isWhole whether it has to read all lists, whatever was written.
     */
    begin(isWhole: boolean) {
      const { mark } = stored;
      const writes = [...unnoted];
      // A write through another process may have changed any list.
      const isKnown = writes.length === 0 && mark === own.mark;
      const parts = isKnown && !isWhole ? own.parts : allParts;
      return {
        mark,
        parts,
        /** @param askedAt when the run began. @param began the same by the database's clock, in milliseconds since the epoch. */
        end(askedAt: number, began: number): void {
          // Another process may have written the rows that the run has found, and its announcement may be late.
          onChanged();
          for (const write of writes) unnoted.delete(write);
          if (stored.mark === mark) stored = { ...stored, mark: undefined };
          if (parts.length < allParts.length) return;
          refreshedAt = askedAt;
          stored = { ...stored, refreshedAt: began };
        },
      };
    },
  };
}
