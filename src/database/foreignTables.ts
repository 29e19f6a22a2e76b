/** Whether a server's database is somebody else's already: the gateway's tables want a database, or a schema, of their own. */

import type pg from 'pg';
import type { Diagnosis } from '../errors.ts';
import { createDatabase } from './connectionError.ts';
import { readLedger } from './migrationLedger.ts';

/** How many tables are named. */
const maxNamed = 3;

/** Everything that is called a table, but for what an extension has brought. */
const relations = `
  SELECT relname AS name FROM pg_class c
  WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) AND relkind IN ('r', 'p', 'v', 'm', 'f')
    AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'e')
  ORDER BY name`;

/**
 * What is said of a database that has tables, none of which a migration of ours has made; undefined of any other.
 * @param isOurs whether a migration of that name is one of ours, whatever has become of it.
 */
export async function findForeignTables(
  client: pg.Client,
  isOurs: (migration: string) => boolean,
): Promise<Diagnosis | undefined> {
  // Before the ledger is read: another gateway may have made all of it in between.
  const { rows } = await client.query<{ name: string }>(relations);
  if (rows.length === 0) return undefined;
  const migrations = await readLedger(client);
  if (migrations.some(({ name }) => isOurs(name))) return undefined;
  const tables = rows
    .map(({ name }) => name)
    .filter((name) => name !== '_prisma_migrations' || migrations.length > 0);
  if (tables.length === 0) return undefined;
  const named = tables.slice(0, maxNamed).map((name) => JSON.stringify(name));
  const more = tables.length > maxNamed ? [`${tables.length - maxNamed} more`] : [];
  const name = client.database === 'dovetail' ? 'dovetail_gateway' : 'dovetail';
  return {
    says: `the database ${JSON.stringify(client.database)} has tables of something else: ${[...named, ...more].join(', ')}`,
    advice: `Dovetail takes a database of its own. ${createDatabase(client, name)}. Name it in DATABASE_URL; or have a schema of its own here: CREATE SCHEMA dovetail, and ?options=-c%20search_path%3Ddovetail at the end of DATABASE_URL.`,
  };
}
