/** Finds the rights of docs/deployment.md that the role of a gateway lacks, and triggers that do not fire. */

import type pg from 'pg';
import { announcedTables, tables } from '../../database/models.ts';

const readable = [...tables, '_prisma_migrations'];

/** The rights that the role of the connection lacks, each with the tables on which it does, in the form for GRANT. */
export async function findMissingRights(client: pg.ClientBase) {
  const { rows } = await client.query<{ right: string; tables: string }>(
    `SELECT needed AS right, string_agg('"' || name || '"', ', ' ORDER BY name) AS tables
     FROM (
       SELECT name, 'SELECT' AS needed FROM unnest($1::text[]) AS name
       UNION ALL VALUES ('User', 'UPDATE'), ('ApiToken', 'INSERT'), ('ApiToken', 'UPDATE'),
         ('ApiToken_id_seq', 'USAGE'), ('DttTemplate', 'UPDATE (id)'),
         ('RateLimit', 'INSERT'), ('RateLimit', 'UPDATE'), ('RateLimit', 'DELETE')
     ) AS rights, to_regclass(quote_ident(name)) AS relation
     WHERE NOT CASE needed WHEN 'UPDATE (id)' THEN has_column_privilege(relation, 'id', 'UPDATE')
       WHEN 'USAGE' THEN has_sequence_privilege(relation, 'USAGE, UPDATE')
       ELSE has_table_privilege(relation, needed) END
     GROUP BY needed ORDER BY needed`,
    [readable],
  );
  return rows;
}

interface SilentTrigger {
  readonly table: string;
  readonly trigger: string;
  /** Missing, as after a table was created again; disabled; or enabled only for some sessions, as after a restore. */
  readonly state: 'is missing' | 'is disabled' | 'fires in some sessions only';
  /** Whether it announces changes, or keeps a rule that no constraint can express. */
  readonly does: 'announce' | 'keep';
}

/** The triggers that are missing or do not fire. Those that announce have to fire in every session, the others in ordinary ones. */
export async function findSilentTriggers(client: pg.ClientBase): Promise<SilentTrigger[]> {
  // Tables whose rows other users can begin to see also have `await_writers`.
  const { rows } = await client.query<SilentTrigger>(
    `SELECT name AS table, event AS trigger, CASE WHEN tgname IS NULL THEN 'is missing' WHEN tgenabled = 'D' THEN 'is disabled' ELSE 'fires in some sessions only' END AS state, does
     FROM (
       SELECT name, event, 'announce' AS does
       FROM unnest($1::text[]) AS name
       CROSS JOIN unnest(ARRAY['announce_insert', 'announce_update', 'announce_delete', 'announce_truncate', 'await_writers']) AS event
       WHERE event <> 'await_writers' OR name IN ('DttTemplate', 'DttLibraryEntry', 'DttSession', 'LockSession')
       UNION ALL VALUES ('DttTemplate', 'library_insert', 'keep'), ('DttTemplate', 'library_update', 'keep'),
         ('DttLibraryEntry', 'keep_own', 'keep'), ('ApiToken', 'only_for_ultra', 'keep'), ('ApiToken', 'forget_prefix', 'keep')
     ) AS needed
     LEFT JOIN pg_trigger ON tgrelid = to_regclass(quote_ident(name)) AND tgname = event
     WHERE tgenabled IS NULL OR tgenabled <> ALL (CASE does WHEN 'keep' THEN '{O,A}' ELSE '{A}' END::"char"[])
     ORDER BY name, event`,
    [announcedTables],
  );
  return rows;
}
