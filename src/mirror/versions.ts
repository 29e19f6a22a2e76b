/** Versions of rows. By them a run finds out whether a row was written by somebody else since the run asked the upstream for the record. */

import type pg from 'pg';
import type { Kind, MirrorRecord } from './records.ts';

/** The version (`xmin`) of each row, by the id of the record. */
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
 * Returns the records without the outdated ones, whose rows were written since the records were asked for: another account may
 * have read a newer version of a template, or a client's request a newer one of a session. A template that is no older than its
 * row is never outdated.
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
