/**
 * How fresh an account is: as the database stores it for all gateways, and as far as this process knows, since other processes over the
 * same database read the account as well. Times here are those of `performance.now()`, a clock that nobody can set. The clock of the
 * database may be set at any time, so two of its times are never compared: a run has read back all writes if the last write before it is
 * still the last one when the run ends.
 */

import pRetry from 'p-retry';
import type pg from 'pg';
import type { Transaction } from '../../../database/transaction.ts';
import { createSharedRuns } from '../../../database/waiting.ts';
import { isHeld } from './run.ts';

export interface StoredFreshness {
  /** When all lists were last read, in milliseconds since the epoch; undefined before the first time. */
  readonly refreshedAt: number | undefined;
  /** How long ago that was, in milliseconds; below 0 if the clock was set back since. */
  readonly age: number;
  /** The mark of the last write of a client upstream; undefined once all writes were read back. */
  readonly mark: number | undefined;
  /** Whether a run holds the lease, so that no other can read lists. */
  readonly isLeased: boolean;
}

export type FreshnessStore = ReturnType<typeof createFreshnessStore>;

/** A time of the database, in milliseconds since the epoch. */
const sinceEpoch = (date: Date | null | undefined) => date?.getTime();

export const createFreshnessStore = (pool: pg.Pool, userId: number) => ({
  async read(): Promise<StoredFreshness> {
    const { rows } = await pool.query<{
      refreshedAt: Date | null;
      age: number | null;
      writtenAt: Date | null;
      isLeased: boolean | null;
    }>(
      `SELECT "refreshedAt", extract(epoch FROM clock_timestamp() - "refreshedAt")::float8 * 1000 AS age, "writtenAt",
         ${isHeld} AS "isLeased"
       FROM "MirroredAccount" WHERE "userId" = $1`,
      [userId],
    );
    const [row] = rows;
    return {
      refreshedAt: sinceEpoch(row?.refreshedAt),
      age: row?.age ?? 0,
      mark: sinceEpoch(row?.writtenAt),
      isLeased: row?.isLeased ?? false,
    };
  },

  /**
   * Notes that a client has written upstream, and tells all gateways. There is no mark for an account that is not here yet.
   * @param what if the client may have changed or deleted a session, the next run reads the whole list.
   * @returns the mark of the write, and that of the one before it, if that had not been read back.
   */
  async storeWrite(what: Written) {
    const { rows } = await untilNoted(() =>
      pool.query<{ mark: Date | null; previous: Date | null }>(
        // Each mark differs from the one before, whatever the clock says.
        `WITH before AS (SELECT "userId", "writtenAt" AS previous FROM "MirroredAccount" WHERE "userId" = $1 FOR UPDATE),
           noted AS (
             UPDATE "MirroredAccount" AS account SET "writtenAt" = greatest(clock_timestamp(), previous + interval '1 ms'),
               "sessionsComplete" = "sessionsComplete" AND NOT $2
             FROM before WHERE account."userId" = before."userId" RETURNING "writtenAt" AS mark, previous)
         SELECT mark, previous, announce($1::int || ' User') FROM (SELECT) AS once LEFT JOIN noted ON true`,
        [userId, what === 'session'],
      ),
    );
    return { mark: sinceEpoch(rows[0]?.mark), previous: sinceEpoch(rows[0]?.previous) };
  },
});

/** Tells all gateways that an account has changed upstream. It waits for no lock. */
export async function announceWrite(pool: pg.Pool, userId: number): Promise<void> {
  await untilNoted(() => pool.query(`SELECT announce($1::int || ' User')`, [userId]));
}

/** Repeats an announcement until the database accepts it: all gateways have to know of a write. */
const untilNoted = <Result>(note: () => Promise<Result>): Promise<Result> =>
  pRetry(note, { retries: 10, minTimeout: 50, maxTimeout: 10_000, unref: true });

interface ReadLists {
  /** When the run began, by `performance.now()`, if it has read all lists. */
  readonly began: number | undefined;
  /** Of the last write before it began. If there was none since, all writes are read back, and all gateways are told. */
  readonly mark: number | undefined;
  /** Whether the mirror has all older sessions now, unless a client has written since the run began. */
  readonly hasAllSessions: boolean;
}

/**
 * Stores what a run has read.
 * @returns when all lists were last read, as in `StoredFreshness`.
 */
export const storeRead = (
  transaction: Transaction,
  userId: number,
  { began, mark, hasAllSessions }: ReadLists,
): Promise<number | undefined> =>
  transaction(async (client) => {
    // Only now: the transaction may have waited.
    const age = began === undefined ? undefined : performance.now() - began;
    const { rows } = await client.query<{ refreshedAt: Date | null }>(
      `UPDATE "MirroredAccount" SET "refreshedAt" = coalesce(clock_timestamp() - $2 * interval '1 ms', "refreshedAt"),
         "sessionsComplete" = "sessionsComplete" OR ($4 AND "writtenAt" IS NOT DISTINCT FROM $3),
         "writtenAt" = nullif("writtenAt", $3) WHERE "userId" = $1 RETURNING "refreshedAt"`,
      [userId, age, mark === undefined ? undefined : new Date(mark), hasAllSessions],
    );
    if (mark !== undefined) await client.query(`SELECT announce($1::int || ' User')`, [userId]);
    return sinceEpoch(rows[0]?.refreshedAt);
  });

/** Whether the mirror is known to have every session that is older than its newest one. */
export async function areSessionsComplete(pool: pg.Pool, accountId: number): Promise<boolean> {
  const { rowCount } = await pool.query(
    'SELECT FROM "MirroredAccount" WHERE "userId" = $1 AND "sessionsComplete"',
    [accountId],
  );
  return rowCount === 1;
}

/** Notes that the mirror may lack older sessions. */
export const noteMissingSessions = (transaction: Transaction, accountId: number) =>
  transaction((client) =>
    client.query('UPDATE "MirroredAccount" SET "sessionsComplete" = false WHERE "userId" = $1', [accountId]),
  );

/** What a client may have written: a template, a session, or anything but these. */
export type Written = 'template' | 'session' | 'other';

/** The age, in milliseconds, that counts for lists whose age is unknown, since the clock of the database was set back: a day. */
const unknownAge = 24 * 60 * 60_000;

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

export type AccountFreshness = ReturnType<typeof createAccountFreshness>;

/** @param onChanged called when any process has read lists: rows may have changed. */
export function createAccountFreshness(store: FreshnessStore, onChanged: () => void) {
  let refreshedAt: number | undefined;
  let stored: Pick<StoredFreshness, 'refreshedAt' | 'mark'> = { refreshedAt: undefined, mark: undefined };
  /** Writes through this process that are not in the database, or not yet. */
  const unnoted = new Set<object>();
  /** The mark of the last write, if since the lists were read only templates were written, all through this process. */
  let ofTemplates: number | undefined;

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
    async noteWrite(what: Written): Promise<void> {
      const write = {};
      unnoted.add(write);
      const { mark, previous } = await store.storeWrite(what);
      const areTemplates = what === 'template' && (previous === undefined || previous === ofTemplates);
      ofTemplates = areTemplates ? mark : undefined;
      // A read in flight may have begun before the write.
      await loader.reload();
      unnoted.delete(write);
    },
    /**
     * Begins a run. Returns whether it may read only templates, the mark of the last write, and a function to call after it.
     * @param isWhole whether it has to read all lists, whatever was written.
     */
    begin(isWhole: boolean) {
      const { mark } = stored;
      const writes = [...unnoted];
      const onlyTemplates = !isWhole && writes.length === 0 && mark !== undefined && mark === ofTemplates;
      return {
        mark,
        onlyTemplates,
        /** @param askedAt when the run began. @param began the same by the database's clock, in milliseconds since the epoch. */
        end(askedAt: number, began: number): void {
          // Another process may have written the rows that the run has found, and its announcement may be late.
          onChanged();
          for (const write of writes) unnoted.delete(write);
          if (stored.mark === mark) stored = { ...stored, mark: undefined };
          if (onlyTemplates) return;
          refreshedAt = askedAt;
          stored = { ...stored, refreshedAt: began };
        },
      };
    },
  };
}
