/**
 * How fresh an account is, as far as this process knows: it reads the account, and so may others over the same database.
 * Times here are those of `performance.now()`, which nobody sets.
 */

import { createSharedRuns } from '../database/sharedRuns.ts';
import { allParts, type Part } from './pullAccount.ts';
import type { FreshnessStore, StoredFreshness } from './storedFreshness.ts';

/** What a write may have changed. */
export interface WriteScope {
  /** The lists that may have changed. */
  readonly parts: readonly Part[];
  /** The id of the session that it has changed or deleted. */
  readonly session?: number | undefined;
}

/** The age, in milliseconds, of what was read before the database's clock was set back, and may have any age: a day. */
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
    /** Loads it after the call. */
    reload: loads.begin,
    /** Loads it if that was not done since it may have changed. */
    ensureLoaded: async () => void (await (isCurrent ? loads.current : loads.begin())),
    /** Takes note that it may have changed. */
    markStale(): void {
      isCurrent = false;
    },
  };
}

/** @param onChanged called when lists were read, by whichever process: rows may have changed here. */
export function createAccountFreshness(store: FreshnessStore, onChanged: () => void) {
  let refreshedAt: number | undefined;
  let stored: Pick<StoredFreshness, 'refreshedAt' | 'mark'> = { refreshedAt: undefined, mark: undefined };
  /** Writes through this process that were not found in the database: not yet, or because it has failed. */
  const unnoted = new Set<object>();
  /** The mark of the last write through this process, and the lists that it and those before may have changed. */
  let own: { mark: number | undefined; parts: readonly Part[] } = { mark: undefined, parts: [] };

  /** Reads the database, where another process may have noted more. Each returns whether a run reads lists. */
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
      return unnoted.size > 0 || stored.mark !== undefined;
    },
    ...loader,
    /** Notes a write, first here and then in the database. */
    async noteWrite({ parts, session }: WriteScope): Promise<void> {
      const write = {};
      unnoted.add(write);
      const { mark, previous } = await store.noteWrite(session);
      const before = previous === undefined ? [] : previous === own.mark ? own.parts : allParts;
      own = { mark, parts: [...new Set([...before, ...parts])] };
      // A read that is under way may have begun before.
      await loader.reload();
      unnoted.delete(write);
    },
    /**
     * Begins a run. Returns the lists that it has to read, the mark of the last write, and what must be called once it has read them.
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
          // Another process may have brought what the run has found here, and its announcement may be late.
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
