/** The table in which migrations are recorded. It is Prisma's own, so `prisma migrate` and the gateway agree on what was applied. */

import { createHash, randomUUID } from 'node:crypto';
import type pg from 'pg';

/** The table as Prisma creates it. */
export const createLedger = `
  CREATE TABLE IF NOT EXISTS "_prisma_migrations" (
    id                  VARCHAR(36) PRIMARY KEY NOT NULL,
    checksum            VARCHAR(64) NOT NULL,
    finished_at         TIMESTAMPTZ,
    migration_name      VARCHAR(255) NOT NULL,
    logs                TEXT,
    rolled_back_at      TIMESTAMPTZ,
    started_at          TIMESTAMPTZ NOT NULL DEFAULT now(),
    applied_steps_count INTEGER NOT NULL DEFAULT 0
  )`;

interface LedgerEntry {
  readonly name: string;
  /** Whether it was applied completely, and not taken back. */
  readonly isApplied: boolean;
}

/** Reads the ledger, which may be that of another program. A database without the table has no entries. */
export async function readLedger(client: pg.ClientBase): Promise<LedgerEntry[]> {
  const found = await client.query<{ found: boolean }>(
    `SELECT to_regclass('"_prisma_migrations"') IS NOT NULL AS found`,
  );
  if (!found.rows[0]?.found) return [];
  const { rows } = await client.query<LedgerEntry>(
    `SELECT migration_name AS name, finished_at IS NOT NULL AND rolled_back_at IS NULL AS "isApplied"
     FROM "_prisma_migrations"`,
  );
  return rows;
}

/** Records a migration as applied. */
export async function recordMigration(client: pg.ClientBase, name: string, sql: string): Promise<void> {
  await client.query(
    `INSERT INTO "_prisma_migrations" (id, checksum, migration_name, finished_at, applied_steps_count)
     VALUES ($1, $2, $3, now(), 1)`,
    [randomUUID(), createHash('sha256').update(sql).digest('hex'), name],
  );
}
