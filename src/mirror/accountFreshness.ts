/** How fresh an account is, as far as this process knows: it reads it, and so may others over the same database. */

export interface AccountFreshness {
  /** When the lists that are here were read, in milliseconds since the epoch; undefined until all of them were. */
  readonly refreshedAt: number | undefined;
  /** How old, in milliseconds, what is here may be: since the epoch, if nothing is. */
  readonly age: number;
  /** Whether something was written upstream, through here, that no run has read yet. */
  readonly isOutdated: boolean;
  /** The same of what was shown as the upstream has it. */
  readonly isBehind: boolean;
  /** Notes that something was written upstream. */
  noteWrite(): void;
  /** Notes that clients are shown what the upstream has. */
  noteShown(): void;
  /** Notes that lists were read: some of them or all, and whether rows here have changed by that. */
  set(time: number, read: { readonly hasChanges: boolean; readonly isPart: boolean }): void;
  /** Asks the database, where another process may have noted more. Returns whether it has. */
  reload(): Promise<boolean>;
  /** Asks the database if that was not done since it may have changed. */
  ensureLoaded(): Promise<void>;
  /** Takes note that the database may say otherwise than is known here. */
  markStale(): void;
}

/**
 * @param read what the database says.
 * @param onChanged told of what has changed here, whoever brought it.
 */
export function createAccountFreshness(
  read: () => Promise<number | undefined>,
  onChanged: () => void,
): AccountFreshness {
  let refreshedAt: number | undefined;
  /** When something was last written, shown and read. */
  const last = { written: 0, shown: 0, read: 0 };
  let isKnown = false;
  let doubts = 0;
  let learning: Promise<unknown> | undefined;

  async function reload(): Promise<boolean> {
    const before = doubts;
    const time = await read();
    // What was asked before a doubt came may be what is doubted.
    isKnown = before === doubts;
    if (time === refreshedAt) return false;
    refreshedAt = time;
    onChanged();
    return true;
  }

  return {
    get refreshedAt() {
      return refreshedAt;
    },
    get age() {
      return Math.max(Date.now() - (refreshedAt ?? 0), 0);
    },
    get isOutdated() {
      return Math.max(refreshedAt ?? 0, last.read) < last.written;
    },
    get isBehind() {
      return Math.max(refreshedAt ?? 0, last.read) < Math.max(last.written, last.shown);
    },
    noteWrite: () => void Object.assign(last, { written: Date.now() }),
    noteShown: () => void Object.assign(last, { shown: Date.now() }),
    set(time, { hasChanges, isPart }) {
      if (hasChanges || refreshedAt === undefined) onChanged();
      // What was written is among it.
      last.read = time;
      if (isPart) return;
      isKnown = true;
      refreshedAt = time;
    },
    reload,
    async ensureLoaded() {
      // One that was under way may have asked before the doubt, and a second has not; more would chase every change.
      for (let round = 0; round < 2 && !isKnown; round++) {
        learning ??= reload().finally(() => {
          learning = undefined;
        });
        await learning;
      }
    },
    markStale() {
      doubts++;
      isKnown = false;
    },
  };
}
