/** Which of the triggers are not at work: those that announce changes, which are not heard of then, and those that keep rules. */

import type pg from 'pg';
import { announcedTables } from './models.ts';

export interface SilentTrigger {
  readonly table: string;
  readonly trigger: string;
  /** Missing, as after a table was made anew; disabled; or enabled for some sessions alone, as after a restore. */
  readonly state: 'missing' | 'disabled' | 'sometimes';
  /** Whether it announces changes, or keeps a rule that no constraint can say. */
  readonly does: 'announce' | 'keep';
}

/** The triggers that are missing, or do not fire: in every session those that announce, in ordinary ones those that keep rules. */
export async function findSilentTriggers(client: pg.ClientBase): Promise<SilentTrigger[]> {
  // A new ApiToken concerns no response that was sent. Tables that others begin to see rows of have one more.
  const { rows } = await client.query<SilentTrigger>(
    `SELECT name AS table, event AS trigger, CASE WHEN tgname IS NULL THEN 'missing' WHEN tgenabled = 'D' THEN 'disabled' ELSE 'sometimes' END AS state, does
     FROM (
       SELECT name, event, 'announce' AS does
       FROM unnest($1::text[]) AS name
       CROSS JOIN unnest(ARRAY['announce_insert', 'announce_update', 'announce_delete', 'announce_truncate', 'await_writers']) AS event
       WHERE (name, event) <> ('ApiToken', 'announce_insert')
         AND (event <> 'await_writers' OR name IN ('DttTemplate', 'DttLibraryEntry', 'DttSession', 'LockSession'))
       UNION ALL VALUES ('DttTemplate', 'library_insert', 'keep'), ('DttTemplate', 'library_update', 'keep'),
         ('DttLibraryEntry', 'keep_own', 'keep'), ('ApiToken', 'only_for_ultra', 'keep')
     ) AS needed
     LEFT JOIN pg_trigger ON tgrelid = to_regclass(quote_ident(name)) AND tgname = event
     WHERE tgenabled IS NULL OR tgenabled <> ALL (CASE does WHEN 'keep' THEN '{O,A}' ELSE '{A}' END::"char"[])
     ORDER BY name, event`,
    [announcedTables],
  );
  return rows;
}
