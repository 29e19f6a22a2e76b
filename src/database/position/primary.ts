/** Where the primary is in its log. */

import { inBatches } from '../inBatches.ts';
import type { Sql } from '../reader/sql.ts';
import { endOfLast, type Position, parsePosition } from './lsn.ts';

/** Whoever has replayed so much has everything that was committed before it was asked for. */
export interface PrimaryPosition {
  readonly position: Position;
  /** The timeline that the primary writes: each promotion begins a new one. */
  readonly timeline: number;
}

/** Takes the position of the primary, by one statement at a time for all who want to know it. */
export type PrimaryPositionReader = () => Promise<PrimaryPosition>;

/** Of what was inserted rather than what was flushed: whoever does not wait for the disk is seen before that. */
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
  return inBatches(async () => {
    const [row] = await sql.run<Row>(statement, []);
    const position = row && parsePosition(row.position);
    if (position === undefined) throw new Error('the server does not say where it is in its log');
    // The name of a file begins with the timeline.
    const timeline = Number.parseInt(row?.file.slice(0, 8) ?? '', 16);
    return { position: endOfLast(position, row?.offset ?? 0, row?.page ?? 0), timeline };
  });
}
