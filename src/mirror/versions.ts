/** Versions of rows, by which a run finds out whether somebody else has written one since it asked the upstream about it. */

import type pg from 'pg';
import type { Kind, MirrorRecord } from './records.ts';

/** By the ids of records. */
export type Versions = ReadonlyMap<number, string>;

export async function readVersions(
  client: pg.Pool | pg.PoolClient,
  { table }: Kind,
  ids: readonly number[],
): Promise<Versions> {
  const { rows } = await client.query<{ id: number; version: string }>(
    `SELECT id, xmin::text AS version FROM "${table}" WHERE id = ANY($1)`,
    [ids],
  );
  return new Map(rows.map(({ id, version }) => [id, version]));
}

/**
 * The records without those whose rows were written since they were asked for: a template may have been read by another
 * account meanwhile, and newer, and a session again. A template that is no older than its row is right in any case.
 * @param asked the versions of the rows when the records were asked for.
 */
export async function withoutOutdated(
  client: pg.PoolClient,
  { table }: Kind,
  records: readonly MirrorRecord[],
  asked: Versions,
): Promise<readonly MirrorRecord[]> {
  const { rows } = await client.query<{ id: number }>(
    `SELECT held.id FROM json_to_recordset($1) AS given (id int, "updatedAt" timestamptz, version text)
     JOIN "${table}" AS held ON held.id = given.id AND held.xmin::text IS DISTINCT FROM given.version
     ${table === 'DttTemplate' ? 'WHERE held."updatedAt" > given."updatedAt"' : ''}`,
    [
      JSON.stringify(
        records.map(({ row: { id, updatedAt } }) => ({ id, updatedAt, version: asked.get(id) })),
      ),
    ],
  );
  const outdated = new Set(rows.map(({ id }) => id));
  return records.filter(({ row }) => !outdated.has(row.id));
}
