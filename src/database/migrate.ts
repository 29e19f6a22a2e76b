/**
 * Brings a database to the schema of `prisma/migrations`: applies all pending migrations or none, and records them in Prisma's
 * own ledger. Processes that start at the same moment take turns. To replace it: run `prisma migrate deploy`, which uses the same
 * ledger, but loads Prisma's schema engine.
 */

import { hash, randomUUID } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import pg from 'pg';
import { program } from '../config/config.ts';
import { errorText, lacksRight, SetupError, systemCodeOf, UnusableDatabase } from '../errors.ts';
import { root } from '../root.ts';
import { createSession, isUnresponsive, unresponsive } from './session.ts';

const checkedIn = new URL('prisma/migrations/', root);

/** The key of the advisory lock for migrations: any number that no other program on the server uses. */
export const migrationLock = 0xd07e7a11;

/** How long, in milliseconds, a statement of a migration may take. */
const longestMigration = 30 * 60_000;

/** Functions that are called while a database is migrated. */
export interface MigrationListener {
  /** Another process migrates the database, and this one waits for it. */
  waiting?(): void;
  /** These migrations are about to be applied. `isNew` says whether the database has none yet. If it throws, nothing is done. */
  pending?(names: readonly string[], isNew: boolean): void;
}

export interface Migration {
  readonly name: string;
  readonly sql: string;
}

/**
 * Applies the pending migrations and returns their names. If none is pending, it only needs the right to read the
 * ledger.
 * @throws {SetupError} when a migration fails, the role may not apply it, or the database has migrations of another version.
 */
export async function migrate(
  connection: pg.ClientConfig,
  folder = checkedIn,
  listener: MigrationListener = {},
): Promise<string[]> {
  const migrations = await readMigrations(folder);
  const { client, connect, close } = createSession(connection, longestMigration);
  let isRead = false;
  try {
    await connect();
    // The embedded database never belongs to another program.
    if (connection.connectionString !== undefined)
      reject('DATABASE_URL', await findForeignTables(client, migrations));
    let pending = await readPending(client, migrations);
    isRead = true;
    if (pending.length === 0) return [];
    await beginAlone(client, listener);
    // Another gateway may have applied them in the meantime.
    pending = await readPending(client, migrations);
    if (pending.length === 0) return [];
    listener.pending?.(pending, pending.length === migrations.length);
    if (pending.length === migrations.length) reject('DATABASE_URL', await findSchemaProblem(client));
    await applyAll(
      client,
      migrations.filter(({ name }) => pending.includes(name)),
    );
    await client.query('COMMIT');
    return pending;
  } catch (error) {
    throw error instanceof SetupError ? error : explain(client, error, isRead);
  } finally {
    // This also ends a transaction that has failed.
    await close();
  }
}

/** @throws {UnusableDatabase} if there is a problem. @param what names the database or the file that has it. */
export function reject(what: string, problem: string | undefined): void {
  if (problem !== undefined) throw new UnusableDatabase(`${what} cannot be used: ${problem}`);
}

/** Begins a transaction, without the time limits of the role, once no other process migrates. */
export async function beginAlone(client: pg.ClientBase, { waiting }: MigrationListener = {}): Promise<void> {
  await client.query('BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE');
  await client.query(withoutTimeLimits);
  const { rows } = await client.query<{ taken: boolean }>(
    `SELECT pg_try_advisory_xact_lock(${migrationLock}) AS taken`,
  );
  if (rows[0]?.taken) return;
  waiting?.();
  await client.query(`SELECT pg_advisory_xact_lock(${migrationLock})`);
}

/** A statement that lifts the time limits of the role, for a transaction. */
// By their names in pg_settings, since PostgreSQL has `transaction_timeout` only from 17 on.
export const withoutTimeLimits = `
  SELECT set_config(name, '0', true) FROM pg_settings
  WHERE name IN ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')`;

/** Applies the migrations in their order, and records them, in a transaction that the caller has begun. */
export async function applyAll(client: pg.ClientBase, migrations: readonly Migration[]): Promise<void> {
  await client.query(createLedger);
  for (const migration of migrations) await apply(client, migration);
}

async function apply(client: pg.ClientBase, { name, sql }: Migration): Promise<void> {
  await client.query(sql).catch((error: Error) => {
    // The detail of the error, such as a duplicate key.
    const detail = error instanceof pg.DatabaseError && error.detail ? ` (${error.detail})` : '';
    const named = new Error(`${name}: ${error.message}${detail}`, { cause: error });
    throw Object.assign(named, { code: systemCodeOf(error) });
  });
  await client.query(
    `INSERT INTO "_prisma_migrations" (id, checksum, migration_name, finished_at, applied_steps_count)
     VALUES ($1, $2, $3, now(), 1)`,
    [randomUUID(), checksumOf(sql), name],
  );
}

/** Says what failed. @param isRead whether the applied migrations could be read. */
function explain({ user }: pg.Client, error: unknown, isRead: boolean): SetupError {
  const text = isUnresponsive(error) ? unresponsive : errorText(error);
  if (systemCodeOf(error) !== lacksRight)
    return new UnusableDatabase(`The database could not be migrated: ${text}`, { cause: error });
  const role = `The role ${JSON.stringify(user)}`;
  if (!isRead) return new UnusableDatabase(`${role} may not read the database: ${text}`, { cause: error });
  return new SetupError(
    `${role} may not migrate the database: ${text}. Run \`${program()} migrate\` with a DATABASE_URL of the role that owns the tables.`,
    { cause: error },
  );
}

const createLedger = `
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

/** The checksum of a migration in the ledger. */
export const checksumOf = (sql: string) => hash('sha256', sql, 'hex');

/**
 * Reads the migrations in the ledger, and whether each was applied completely. The ledger may be that of another program.
 * @throws {SetupError} if the role may use no schema, so that a ledger could not be seen.
 */
export async function readLedger(client: pg.ClientBase) {
  const { rows: tables } = await client.query(
    `SELECT FROM pg_class WHERE oid = to_regclass('"_prisma_migrations"')`,
  );
  if (tables.length === 0) {
    reject('DATABASE_URL', await findPathProblem(client));
    return [];
  }
  const { rows } = await client.query<{ name: string; checksum: string | null; isApplied: boolean }>(
    `SELECT migration_name AS name, to_jsonb(ledger) ->> 'checksum' AS checksum, finished_at IS NOT NULL AND rolled_back_at IS NULL AS "isApplied"
     FROM "_prisma_migrations" AS ledger`,
  );
  return rows;
}

/** Describes a database whose tables belong to another program: no migration of ours was applied to it. */
export async function findForeignTables(
  client: pg.Client,
  migrations?: readonly Migration[],
): Promise<string | undefined> {
  // Tables and views, except those of extensions. They are read before the ledger: another gateway may create all of it
  // in between.
  const { rows } = await client.query<{ name: string }>(`
    SELECT to_json(relname)::text AS name FROM pg_class c
    WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
      AND relkind IN ('r', 'p', 'v', 'm', 'f') AND relname <> '_prisma_migrations'
      AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'e')
    ORDER BY relname LIMIT 3`);
  const ours = migrations ?? (await readMigrations(checkedIn));
  const ledger = await readLedger(client);
  if (rows.length === 0 || ledger.some((entry) => ours.some(({ name }) => name === entry.name)))
    return undefined;
  return `the database ${JSON.stringify(client.database)} has tables of something else, such as ${rows.map((row) => row.name).join(', ')}`;
}

/** Describes a `search_path` without a schema that the role may use: PostgreSQL skips the others, and all tables seem to be missing. */
export async function findPathProblem(client: pg.ClientBase): Promise<string | undefined> {
  const { rows } = await client.query<{ role: string; path: string }>(
    `SELECT current_user AS role, current_setting('search_path') AS path WHERE current_schema() IS NULL`,
  );
  const [found] = rows;
  return (
    found &&
    `its search_path is ${found.path}, and it has no schema that the role ${JSON.stringify(found.role)} may use`
  );
}

/** Describes why the tables cannot be created in an empty database. */
export async function findSchemaProblem(client: pg.ClientBase): Promise<string | undefined> {
  const { rows } = await client.query<{ role: string; schema: string }>(
    `SELECT current_user AS role, current_schema() AS schema WHERE NOT has_schema_privilege(current_schema(), 'CREATE')`,
  );
  const [found] = rows;
  if (!found) return findPathProblem(client);
  return `the role ${JSON.stringify(found.role)} may not create tables in the schema ${JSON.stringify(found.schema)}`;
}

/** The number of applied migrations, the pending ones, and those that this version does not know. */
export async function readProgress(client: pg.ClientBase, migrations?: readonly Migration[]) {
  const all = migrations ?? (await readMigrations(checkedIn));
  const ledger = await readLedger(client);
  const applied = new Map(
    ledger.filter(({ isApplied }) => isApplied).map(({ name, checksum }) => [name, checksum]),
  );
  // A migration of the same name with other content is of another version as well.
  const isKnown = ({ name, sql }: Migration) => applied.get(name) === checksumOf(sql);
  const pending = all.filter((migration) => !isKnown(migration)).map(({ name }) => name);
  for (const { name } of all.filter(isKnown)) applied.delete(name);
  return { applied: all.length - pending.length, pending, unknown: [...applied.keys()] };
}

async function readPending(client: pg.ClientBase, migrations: readonly Migration[]) {
  const { pending, unknown } = await readProgress(client, migrations);
  reject('The database', findVersionProblem(unknown));
  return pending;
}

/** Describes a database with migrations that this version does not know. */
export const findVersionProblem = (unknown: readonly string[]) =>
  unknown.length === 0 ? undefined : `it has migrations of another version: ${unknown.join(', ')}`;

/** The migrations, oldest first. */
export async function readMigrations(folder = checkedIn): Promise<Migration[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const names = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  return Promise.all(
    names.sort().map(async (name) => ({
      name,
      sql: await readFile(new URL(`${name}/migration.sql`, folder), 'utf8'),
    })),
  );
}
