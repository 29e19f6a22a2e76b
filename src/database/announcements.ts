/** Which of the triggers that announce changes are not at work: what is written there is not heard of. */

import type pg from 'pg';

/** The tables that responses come from. */
const tables = [
  'User',
  'ApiToken',
  'DttDevice',
  'DttTemplate',
  'DttTemplateSegment',
  'DttLibraryEntry',
  'DttSession',
  'TrainerSegment',
  'LkbxDevice',
  'LockTemplate',
  'LockSession',
  'LockSegment',
  'OssmDevice',
];

export interface SilentTrigger {
  readonly table: string;
  readonly trigger: string;
  /** Missing as after a table was made anew, or there and told not to fire, at least in some sessions. */
  readonly state: 'missing' | 'disabled';
}

/** The triggers that are missing, or do not fire in every session. */
export async function findSilentTriggers(client: pg.ClientBase): Promise<SilentTrigger[]> {
  // A new ApiToken concerns no response that was sent. Tables that others begin to see rows of have one more.
  const { rows } = await client.query<SilentTrigger>(
    `SELECT name AS table, event AS trigger, CASE WHEN tgname IS NULL THEN 'missing' ELSE 'disabled' END AS state
     FROM unnest($1::text[]) AS name
     CROSS JOIN unnest(ARRAY['announce_insert', 'announce_update', 'announce_delete', 'announce_truncate', 'await_writers']) AS event
     LEFT JOIN pg_trigger ON tgrelid = to_regclass(quote_ident(name)) AND tgname = event
     WHERE tgenabled IS DISTINCT FROM 'A' AND (name, event) <> ('ApiToken', 'announce_insert')
       AND (event <> 'await_writers' OR name IN ('DttTemplate', 'DttLibraryEntry', 'DttSession', 'LockSession'))
     ORDER BY name, event`,
    [tables],
  );
  return rows;
}
