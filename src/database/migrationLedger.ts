/** The table in which migrations are recorded, in the form of Prisma Migrate. */

import type pg from 'pg';

interface LedgerEntry {
  readonly name: string;
  /** Whether it was applied completely, and not taken back. */
  readonly isApplied: boolean;
}

/** Reads which migrations the database has seen, which may be those of something else. A database without the table has seen none. */
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
