/** Reads the position of the primary in its write-ahead log (PostgreSQL's documentation, "pg_lsn Type"). */

import type { Sql } from '../../database/reader/sql.ts';
import { createSharedRuns } from '../../database/waiting.ts';

/** Bytes since the beginning of the log. */
export type Position = bigint;

/** A server that has replayed up to this position shows everything that was committed before the position was requested. */
export interface PrimaryPosition {
  readonly position: Position;
  /** The timeline that the primary writes: each promotion begins a new one. */
  readonly timeline: number;
  /** The position as PostgreSQL writes it, such as `16/B374D848`. */
  readonly text: string;
}

/**
 * The insert position, not the flushed one: with synchronous_commit = off, a commit is visible before it is flushed. The name
 * of a file of the log begins with the timeline.
 */
const statement = `SELECT written::text AS text, left(pg_walfile_name(written), 8) AS timeline
  FROM (SELECT pg_current_wal_insert_lsn() AS written OFFSET 0) now`;

export function createPositionReader(sql: Pick<Sql, 'run'>) {
  // Concurrent calls share one statement.
  return createSharedRuns(async (): Promise<PrimaryPosition> => {
    const [row] = await sql.run<{ text: string; timeline: string }>(statement, []);
    const position = row && parsePosition(row.text);
    if (position === undefined) throw new Error('the server does not say where it is in its log');
    return { position, timeline: Number.parseInt(row?.timeline ?? '', 16), text: row?.text ?? '' };
  }).begin;
}

/** Reads a position as PostgreSQL writes it; undefined for any other text. */
export function parsePosition(text: string): Position | undefined {
  const [, high, low] = /^([\dA-F]{1,8})\/([\dA-F]{1,8})$/i.exec(text) ?? [];
  return high === undefined || low === undefined
    ? undefined
    : (BigInt(`0x${high}`) << 32n) | BigInt(`0x${low}`);
}
