/**
 * Rows for what the account refers to but cannot read, such as the trainer of an old session that was deleted since.
 * They make the references whole, and nobody sees them.
 */

import type pg from 'pg';
import type { Row } from './records.ts';
import { skipIds } from './rows.ts';

/** The user who owns such rows. Ids of the REST interface start at 1. */
export const nobody = 0;

/** With the id behind it, the name of a user of whom only the id is known, such as the owner of an imported template. */
export const nameOfOtherUser = 'upstream-user-';

/** Adds a user of whom only the id is known. */
export async function addOtherUser(client: pg.PoolClient, id: number): Promise<void> {
  await client.query(
    'INSERT INTO "User" (id, username) VALUES ($1::int, $2::text || $1::int) ON CONFLICT DO NOTHING',
    [id, nameOfOtherUser],
  );
  await skipIds(client, 'User');
}

/** Adds the trainers and templates that the sessions refer to, where the mirror does not have them. */
export async function addUnreadable(client: pg.PoolClient, sessions: readonly Row[]): Promise<void> {
  await client.query(
    `INSERT INTO "DttDevice" (id, "bubbleId", "ownerId", "macAddress")
     SELECT id, 'upstream-dtt-' || id, $2, '' FROM unnest($1::int[]) AS id ON CONFLICT DO NOTHING`,
    [unique(sessions.map((row) => row.trainerId)), nobody],
  );
  await client.query(
    `INSERT INTO "DttTemplate" (id, "bubbleId", "ownerId", name, "targetDepth", "targetWindow")
     SELECT id, 'upstream-template-' || id, $2, '', 0, 0 FROM unnest($1::int[]) AS id ON CONFLICT DO NOTHING`,
    [unique(sessions.map((row) => row.templateId)), nobody],
  );
  await skipIds(client, 'DttDevice');
  await skipIds(client, 'DttTemplate');
}

const unique = (values: readonly unknown[]) => [...new Set(values)].filter((value) => value != null);

/** Makes placeholders of those trainers that sessions refer to. */
export async function hideTrainers(client: pg.PoolClient, ids: readonly number[]): Promise<void> {
  await client.query(
    `UPDATE "DttDevice" SET "ownerId" = $2, "bubbleId" = 'upstream-dtt-' || id, "macAddress" = '', "serialNumber" = NULL
     WHERE id = ANY($1) AND EXISTS (SELECT FROM "DttSession" WHERE "trainerId" = "DttDevice".id)`,
    [ids, nobody],
  );
}

/** Makes placeholders of those templates that sessions refer to. */
export async function hideTemplates(client: pg.PoolClient, ids: readonly number[]): Promise<void> {
  await client.query(
    `UPDATE "DttTemplate" SET "ownerId" = $2, "bubbleId" = 'upstream-template-' || id, name = '', description = NULL,
       tagline = NULL, message = NULL
     WHERE id = ANY($1) AND EXISTS (SELECT FROM "DttSession" WHERE "templateId" = "DttTemplate".id)`,
    [ids, nobody],
  );
}
