/** The accounts whose records the load requests: a few, with enough records for full pages. */

import { createHash, randomBytes } from 'node:crypto';
import pg from 'pg';

export interface LoadAccount {
  readonly userId: number;
  readonly token: string;
  readonly templates: readonly number[];
  readonly sessions: readonly number[];
}

/** The id of the first account, far from that of the demo account. */
const firstUser = 5_001;
/** More than are activated during a fault, so that the number of lost activations can be determined. */
const templatesEach = 20;
const sessionsEach = 60;

/** Adds accounts to a migrated database. */
export async function addAccounts(connection: pg.ClientConfig, count: number): Promise<LoadAccount[]> {
  const client = new pg.Client(connection);
  await client.connect();
  try {
    const accounts: LoadAccount[] = [];
    for (let index = 0; index < count; index++) accounts.push(await addAccount(client, firstUser + index));
    return accounts;
  } finally {
    await client.end();
  }
}

async function addAccount(client: pg.Client, userId: number): Promise<LoadAccount> {
  const token = `dvt_${randomBytes(32).toString('base64url')}`;
  const digest = createHash('sha256').update(token).digest();
  const idsOf = async (text: string): Promise<number[]> => {
    const { rows } = await client.query<{ id: number }>(text, [userId]);
    return rows.map(({ id }) => id);
  };
  await idsOf(
    `INSERT INTO "User" (id, username, "subscriptionTier") VALUES ($1, 'load-' || $1::int, 'ultra') RETURNING id`,
  );
  await client.query(`INSERT INTO "ApiToken" ("userId", name, digest, slot) VALUES ($1, 'load', $2, 1)`, [
    userId,
    digest,
  ]);
  const [device] = await idsOf(
    `INSERT INTO "DttDevice" ("ownerId", "bubbleId") VALUES ($1, gen_random_uuid()) RETURNING id`,
  );
  const templates = await idsOf(
    `INSERT INTO "DttTemplate" ("ownerId", "bubbleId", name, "targetDepth", "targetWindow")
     SELECT $1, gen_random_uuid(), 'Template ' || i, 50, 10 FROM generate_series(1, ${templatesEach}) i RETURNING id`,
  );
  const sessions = await idsOf(
    `INSERT INTO "DttSession" ("ownerId", "bubbleId", name, "trainerId", "createdAt")
     SELECT $1, gen_random_uuid(), 'Session ' || i, ${device}, timestamptz '2026-01-01' + i * interval '1 hour'
     FROM generate_series(1, ${sessionsEach}) i RETURNING id`,
  );
  await client.query(
    `INSERT INTO "TrainerSegment" ("sessionId", type, "order") SELECT s, 'repetition', o
     FROM unnest($1::int[]) s, generate_series(0, 4) o`,
    [sessions],
  );
  return { userId, token, templates, sessions };
}
