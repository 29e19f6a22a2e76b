/**
 * How fresh an account is, as the database has it for all gateways. Its times are those of the database's clock, since the
 * clocks of gateways may differ.
 */

import pRetry from 'p-retry';
import type pg from 'pg';

export interface StoredFreshness {
  /** When the lists that are here were read, in milliseconds since the epoch; undefined until all of them were. */
  readonly refreshedAt: number | undefined;
  /** How long ago that was, in milliseconds; below 0 if it was noted by a clock that was ahead. */
  readonly age: number;
  /** When a client last wrote upstream, if no run has read all lists since; undefined otherwise. */
  readonly writtenAt: number | undefined;
  /** Whether a run holds the lease, so that no other can read lists. */
  readonly isLeased: boolean;
}

/** A write that was noted. */
export interface NotedWrite {
  readonly writtenAt: number;
  /** When the write before it was noted, if that had not been read back. */
  readonly previous: number | undefined;
}

export interface FreshnessStore {
  read(): Promise<StoredFreshness>;
  /** Notes that a client has written upstream, and tells all gateways. Returns undefined for an account that is not here yet. */
  noteWrite(): Promise<NotedWrite | undefined>;
  /** Notes that the last write was read back if it was noted then, and tells all gateways. Both times are included. */
  clearWrite(from: number, until: number): Promise<void>;
}

export const createFreshnessStore = (pool: pg.Pool, userId: number): FreshnessStore => ({
  read: () => readStoredFreshness(pool, userId),
  noteWrite: () => noteWrite(pool, userId),
  async clearWrite(from, until) {
    await pool.query(
      `WITH cleared AS (
         UPDATE "MirroredAccount" SET "writtenAt" = NULL WHERE "userId" = $1 AND "writtenAt" BETWEEN $2 AND $3
         RETURNING "userId")
       SELECT announce("userId" || ' User') FROM cleared`,
      [userId, new Date(from), new Date(until)],
    );
  },
});

/** A time of the database, in milliseconds since the epoch. */
const timeOf = (date: Date | null | undefined) => date?.getTime();

export async function readStoredFreshness(pool: pg.Pool, userId: number): Promise<StoredFreshness> {
  const { rows } = await pool.query<{
    refreshedAt: Date | null;
    age: number | null;
    writtenAt: Date | null;
    isLeased: boolean | null;
  }>(
    // Whose lease keeps a run from reading lists, `takeLease` says.
    `SELECT "refreshedAt", extract(epoch FROM clock_timestamp() - "refreshedAt")::float8 * 1000 AS age,
       CASE WHEN "writtenAt" > coalesce("refreshedAt", '-infinity') THEN "writtenAt" END AS "writtenAt",
       "heldUntil" >= now() AND "heldBy" NOT LIKE 'details %' AS "isLeased"
     FROM "MirroredAccount" WHERE "userId" = $1`,
    [userId],
  );
  const [row] = rows;
  return {
    refreshedAt: timeOf(row?.refreshedAt),
    age: row?.age ?? 0,
    writtenAt: timeOf(row?.writtenAt),
    isLeased: row?.isLeased ?? false,
  };
}

async function noteWrite(pool: pg.Pool, userId: number): Promise<NotedWrite | undefined> {
  const { rows } = await pool.query<{ writtenAt: Date | null; previous: Date | null }>(
    `WITH before AS (
       SELECT "userId", CASE WHEN "writtenAt" > coalesce("refreshedAt", '-infinity') THEN "writtenAt" END AS previous
       FROM "MirroredAccount" WHERE "userId" = $1 FOR UPDATE),
     noted AS (
       UPDATE "MirroredAccount" AS account SET "writtenAt" = date_trunc('milliseconds', clock_timestamp())
       FROM before WHERE account."userId" = before."userId" RETURNING account."writtenAt", previous)
     SELECT "writtenAt", previous, announce($1::int || ' User') FROM (SELECT) AS once LEFT JOIN noted ON true`,
    [userId],
  );
  const [row] = rows;
  return row?.writtenAt ? { writtenAt: row.writtenAt.getTime(), previous: timeOf(row.previous) } : undefined;
}

/** Repeats what all gateways have to know of a write, until the database takes it. */
export const untilNoted = <Result>(note: () => Promise<Result>): Promise<Result> =>
  pRetry(note, { retries: 10, minTimeout: 50, maxTimeout: 10_000, unref: true });

/** Tells all gateways that an account has changed upstream. It waits for no lock. */
export async function announceWrite(pool: pg.Pool, userId: number): Promise<void> {
  await untilNoted(() => pool.query(`SELECT announce($1::int || ' User')`, [userId]));
}

/** What time it is by the database's clock. */
export async function readDatabaseTime(pool: pg.Pool): Promise<Date> {
  const { rows } = await pool.query<{ now: Date }>('SELECT clock_timestamp() AS now');
  return rows[0]?.now ?? new Date();
}
