/** Brings a database to the schema of `prisma/migrations`. */

import { createHash, randomUUID } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import pg from 'pg';
import { SetupError } from '../config.ts';

const checkedIn = new URL('../../prisma/migrations/', import.meta.url);

/** The lock under which one process migrates: any number that nothing else on the server uses. */
const migrationLock = 0xd07e7a11;

/**
 * The ledger of `prisma migrate`, as Prisma itself creates it, so that its tools and the gateway agree on what
 * was applied. The gateway does not run them: their engine is a binary that has to be downloaded.
 */
const ledger = `
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

/**
 * Applies the pending migrations, all of them or none, and returns their names. Gateways that start at the same
 * moment take turns.
 * @throws {SetupError} when a migration fails, or the database was migrated by a later version.
 */
export async function migrate(connection: pg.ClientConfig, folder = checkedIn): Promise<string[]> {
  const migrations = await readMigrations(folder);
  const client = new pg.Client(connection);
  // A lost connection fails the query at hand; without a listener it would end the process as well.
  client.on('error', () => {});
  try {
    await client.connect();
    // Whatever the role's defaults are.
    await client.query('BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE');
    await client.query('SELECT pg_advisory_xact_lock($1)', [migrationLock]);
    await client.query(ledger);
    const applied = await readApplied(client);
    const pending = migrations.filter(({ name }) => !applied.delete(name));
    if (applied.size > 0) throw new Error(`it has migrations of a later version: ${[...applied].join(', ')}`);
    for (const { name, sql } of pending) {
      await client.query(sql).catch((error: Error) => {
        throw new Error(`${name}: ${error.message}`, { cause: error });
      });
      await client.query(
        `INSERT INTO "_prisma_migrations" (id, checksum, migration_name, finished_at, applied_steps_count)
         VALUES ($1, $2, $3, now(), 1)`,
        [randomUUID(), createHash('sha256').update(sql).digest('hex'), name],
      );
    }
    await client.query('COMMIT');
    return pending.map(({ name }) => name);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new SetupError(`The database could not be migrated: ${reason}`, { cause: error });
  } finally {
    await client.end();
  }
}

export interface Progress {
  /** How many of this version's migrations the database has. */
  readonly applied: number;
  readonly pending: readonly string[];
  /** Those that the database has of a later version. */
  readonly unknown: readonly string[];
}

/** How far the database has come, which this only reads. */
export async function readProgress(client: pg.ClientBase, folder = checkedIn): Promise<Progress> {
  const migrations = await readMigrations(folder);
  const { rows } = await client.query(`SELECT to_regclass('"_prisma_migrations"') IS NOT NULL AS found`);
  const applied = rows[0]?.found ? await readApplied(client) : new Set<string>();
  const pending = migrations.map(({ name }) => name).filter((name) => !applied.delete(name));
  return { applied: migrations.length - pending.length, pending, unknown: [...applied] };
}

async function readApplied(client: pg.ClientBase): Promise<Set<string>> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT migration_name AS name FROM "_prisma_migrations" WHERE finished_at IS NOT NULL AND rolled_back_at IS NULL`,
  );
  return new Set(rows.map(({ name }) => name));
}

/** The migrations, oldest first. */
async function readMigrations(folder: URL): Promise<{ name: string; sql: string }[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const names = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  return Promise.all(
    names
      .sort()
      .map(async (name) => ({ name, sql: await readFile(new URL(`${name}/migration.sql`, folder), 'utf8') })),
  );
}
