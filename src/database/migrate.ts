/**
 * Brings a database to the schema of `prisma/migrations`: applies all pending migrations or none, and records them in Prisma's
 * own ledger. Processes that start at the same moment take turns. It may be replaced by `prisma migrate deploy`, which
 * agrees with the ledger, but loads Prisma's schema engine.
 */

import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import type pg from 'pg';
import { type Diagnosis, errorText, SetupError, systemCodeOf } from '../errors.ts';
import { root } from '../root.ts';
import type { ServerConfig } from './connection/client.ts';
import { findForeignTables } from './foreignTables.ts';
import { createLedger, readLedger, recordMigration } from './migrationLedger.ts';
import { findSchemaProblem, findUsageProblem } from './rights.ts';
import { createSession, isUnresponsive, unresponsiveText } from './session.ts';

const checkedIn = new URL('prisma/migrations/', root);

/** The first migration of the unreleased versions, which is in the ledger of each of their databases. */
const unreleased = '20261120000000_init';

/** The key of the advisory lock under which one process migrates: any number that nothing else on the server uses. */
export const migrationLock = 0xd07e7a11;

/** How long, in milliseconds, a statement of a migration may take. */
const longestMigration = 30 * 60_000;

/** PostgreSQL's codes for what a role may not do, and for a search_path that leads to no schema. */
const lacksRights = new Set(['42501', '3F000']);

/** Functions that are called while a database is migrated. */
export interface MigrationListener {
  /** Another process migrates the database, and this one waits for it. */
  waiting?(): void;
  /** These migrations are about to be applied. `isNew` says whether the database has none yet. If it throws, nothing is done. */
  pending?(names: readonly string[], isNew: boolean): void;
}

interface Migration {
  readonly name: string;
  readonly sql: string;
}

/**
 * Applies the pending migrations and returns their names. If nothing is pending, this only reads, so it needs no right but
 * to read the ledger.
 * @throws {SetupError} when a migration fails, the role may not apply it, or the database has migrations of another version.
 */
export async function migrate(
  connection: ServerConfig,
  folder = checkedIn,
  listener: MigrationListener = {},
): Promise<string[]> {
  const migrations = await readMigrations(folder);
  const { client, connect, close } = createSession(connection);
  let pending: readonly string[] = [];
  try {
    await connect();
    // That of the embedded engine is never somebody else's.
    if (connection.connectionString !== undefined)
      reject('DATABASE_URL', await readForeignTables(client, migrations));
    pending = await readPending(client, migrations);
    if (pending.length === 0) return [];
    const isNew = pending.length === migrations.length;
    if (isNew) reject('DATABASE_URL', await findUsageProblem(client));
    listener.pending?.(pending, isNew);
    await beginAlone(client, listener);
    await client.query(createLedger);
    // Another gateway may have applied them in the meantime.
    pending = await readPending(client, migrations);
    for (const migration of migrations) if (pending.includes(migration.name)) await apply(client, migration);
    await queryLong(client, 'COMMIT');
    return [...pending];
  } catch (error) {
    throw await explain(client, error, pending);
  } finally {
    // This also ends a transaction that has failed.
    await close();
  }
}

function reject(what: string, problem: Diagnosis | undefined): void {
  if (problem) throw new SetupError(`${what} cannot be used: ${problem.says}. ${problem.advice}`);
}

/** Begins a transaction, without the time limits of the role, once no other process migrates. */
async function beginAlone(client: pg.ClientBase, { waiting }: MigrationListener): Promise<void> {
  await client.query('BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE');
  // By their names in pg_settings, since PostgreSQL has `transaction_timeout` only from 17 on.
  await client.query(`
    SELECT set_config(name, '0', true) FROM pg_settings
    WHERE name IN ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')`);
  const { rows } = await client.query<{ taken: boolean }>('SELECT pg_try_advisory_xact_lock($1) AS taken', [
    migrationLock,
  ]);
  if (rows[0]?.taken) return;
  waiting?.();
  await queryLong(client, `SELECT pg_advisory_xact_lock(${migrationLock})`);
}

/** Runs a statement that may take as long as a migration may. */
function queryLong(client: pg.ClientBase, text: string) {
  // `pg` takes the timeout with a query too, though its types do not say so.
  const query: pg.QueryConfig & { query_timeout: number } = { text, query_timeout: longestMigration };
  return client.query(query);
}

async function apply(client: pg.ClientBase, { name, sql }: Migration): Promise<void> {
  await queryLong(client, sql).catch((error: Error) => {
    // What PostgreSQL adds to an error, such as the key of a row that there are two of.
    const detail = 'detail' in error && typeof error.detail === 'string' ? ` (${error.detail})` : '';
    const named = new Error(`${name}: ${error.message}${detail}`, { cause: error });
    throw Object.assign(named, { code: systemCodeOf(error) });
  });
  await recordMigration(client, name, sql);
}

/** Says what to do about an error: which role lacks what, if that is it. */
async function explain(client: pg.Client, error: unknown, pending: readonly string[]): Promise<SetupError> {
  if (error instanceof SetupError) return error;
  const text = isUnresponsive(error) ? unresponsiveText : errorText(error);
  if (!lacksRights.has(systemCodeOf(error) ?? ''))
    return new SetupError(`The database could not be migrated: ${text}`, { cause: error });
  await client.query('ROLLBACK');
  const isNew = pending.length > 0 && (await readLedger(client)).length === 0;
  const problem = isNew ? await findSchemaProblem(client) : undefined;
  if (problem)
    return new SetupError(`DATABASE_URL cannot be used: ${problem.says}. ${problem.advice}`, {
      cause: error,
    });
  const { rows } = await client.query<{ role: string }>('SELECT current_user AS role');
  const role = JSON.stringify(rows[0]?.role);
  return new SetupError(
    pending.length === 0
      ? `The role ${role} may not read which migrations are applied: ${text}. Grant it SELECT on "_prisma_migrations".`
      : `The role ${role} may not apply the pending migrations ${pending.join(', ')}: ${text}. Run \`npx dovetail migrate\` with a DATABASE_URL of the role that owns the tables.`,
    { cause: error },
  );
}

/** What is said of a database that has tables of something else, which this only reads; undefined of any other. */
export async function readForeignTables(client: pg.Client, migrations?: readonly Migration[]) {
  const ours = (migrations ?? (await readMigrations(checkedIn))).map(({ name }) => name);
  return findForeignTables(client, (name) => name === unreleased || ours.includes(name));
}

export interface Progress {
  /** How many of this version's migrations the database has. */
  readonly applied: number;
  readonly pending: readonly string[];
  /** Those that the database has of another version. */
  readonly unknown: readonly string[];
}

/** How far the database has come, which this only reads. */
export async function readProgress(
  client: pg.ClientBase,
  migrations?: readonly Migration[],
): Promise<Progress> {
  const all = migrations ?? (await readMigrations(checkedIn));
  const ledger = await readLedger(client);
  const applied = new Set(ledger.filter(({ isApplied }) => isApplied).map(({ name }) => name));
  const pending = all.map(({ name }) => name).filter((name) => !applied.delete(name));
  return { applied: all.length - pending.length, pending, unknown: [...applied] };
}

async function readPending(
  client: pg.ClientBase,
  migrations: readonly Migration[],
): Promise<readonly string[]> {
  const { pending, unknown } = await readProgress(client, migrations);
  reject('The database', findVersionProblem(unknown));
  return pending;
}

/** What to say of a database with migrations that this version does not know; undefined if there are none. */
export function findVersionProblem(unknown: readonly string[]): Diagnosis | undefined {
  if (unknown.includes(unreleased))
    return {
      says: 'it was made by an unreleased version, and cannot be upgraded',
      advice: 'Name a new database in DATABASE_URL or, if it is the embedded one, a new folder in DATA_DIR.',
    };
  if (unknown.length === 0) return undefined;
  return {
    says: `it has migrations of a later version: ${unknown.join(', ')}`,
    advice: 'Install the version that has them, or name another database.',
  };
}

/** A digest of the names and texts of all migrations. */
export async function digestOfMigrations(): Promise<string> {
  const digest = createHash('sha256');
  for (const { name, sql } of await readMigrations(checkedIn)) digest.update(JSON.stringify([name, sql]));
  return digest.digest('hex');
}

/** The migrations, oldest first. */
async function readMigrations(folder: URL): Promise<Migration[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const names = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  return Promise.all(
    names.sort().map(async (name) => ({
      name,
      sql: await readFile(new URL(`${name}/migration.sql`, folder), 'utf8'),
    })),
  );
}
