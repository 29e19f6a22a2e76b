/** Reads the present position of the primary in its write-ahead log. */

import type { Sql } from '../reader/sql.ts';
import { createSharedRuns } from '../sharedRuns.ts';
import { endOfLast, type Position, parsePosition } from './lsn.ts';

/** A server that has replayed up to this position shows everything that was committed before the position was requested. */
export interface PrimaryPosition {
  readonly position: Position;
  /** The timeline that the primary writes: each promotion begins a new one. */
  readonly timeline: number;
}

/** Reads the position of the primary. Concurrent calls share one statement. */
export type PrimaryPositionReader = () => Promise<PrimaryPosition>;

/** The insert position, not the flushed one: with synchronous_commit = off, a commit is visible before it is flushed. */
const statement = `SELECT written::text AS position, file_name AS file, file_offset AS "offset",
  current_setting('wal_block_size')::int AS page
  FROM (SELECT pg_current_wal_insert_lsn() AS written OFFSET 0) now, pg_walfile_name_offset(written)`;

interface Row {
  readonly position: string;
  readonly file: string;
  readonly offset: number;
  readonly page: number;
}

export function createPositionReader(sql: Pick<Sql, 'run'>): PrimaryPositionReader {
  return createSharedRuns(async () => {
    const [row] = await sql.run<Row>(statement, []);
    const position = row && parsePosition(row.position);
    if (position === undefined) throw new Error('the server does not say where it is in its log');
    // The name of a file begins with the timeline.
    const timeline = Number.parseInt(row?.file.slice(0, 8) ?? '', 16);
    return { position: endOfLast(position, row?.offset ?? 0, row?.page ?? 0), timeline };
  }).begin;
}
