/** Brings a database to the schema of `prisma/migrations`. */

import { createHash, randomUUID } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import type pg from 'pg';
import { errorText, SetupError, systemCodeOf } from '../errors.ts';
import { root } from '../root.ts';
import type { ServerConfig } from './connection/client.ts';
import type { ServerSetting } from './connection/server.ts';
import { findForeignTables } from './foreignTables.ts';
import { readLedger } from './migrationLedger.ts';
import { queryLong, runMigrationTransaction, type TransactionListener } from './migrationTransaction.ts';
import { findSchemaProblem, findUsageProblem } from './rights.ts';
import { createSession, isUnresponsive, unresponsiveText } from './session.ts';

const checkedIn = new URL('prisma/migrations/', root);

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

/** Told how it goes. */
export interface MigrationListener extends TransactionListener {
  /** Which migrations are about to be applied, if any are, and whether the database has none yet. Nothing is done if it throws. */
  pending?(names: readonly string[], isNew: boolean): void;
  /** What they found that did not fit, and what has become of it: told once all are applied. */
  repaired?(what: string): void;
}

/**
 * Applies the pending migrations, all of them or none, and returns their names. Gateways that start at the same
 * moment take turns. Where nothing is pending this only reads, so that a role will do that may read and write rows.
 * @throws {SetupError} when a migration fails, the role may not apply it, or the database was migrated by a later version.
 */
export async function migrate(
  connection: ServerConfig,
  folder = checkedIn,
  listener: MigrationListener = {},
): Promise<string[]> {
  const migrations = await readMigrations(folder);
  const { client, connect, close } = createSession(connection);
  let pending: Migration[] = [];
  try {
    await connect();
    if (connection.connectionString !== undefined) await rejectForeignTables(client, migrations);
    pending = await readPending(client, migrations);
    if (pending.length === 0) return [];
    const problem = pending.length === migrations.length ? await findUsageProblem(client) : undefined;
    if (problem) throw new SetupError(`DATABASE_URL cannot be used: ${problem.says}. ${problem.advice}`);
    listener.pending?.(
      pending.map(({ name }) => name),
      pending.length === migrations.length,
    );
    const repairs = await runMigrationTransaction(
      client,
      connection,
      async () => {
        await queryLong(client, ledger);
        // Another gateway may have been faster.
        pending = await readPending(client, migrations);
        const made: string[] = [];
        for (const migration of pending) made.push(...(await apply(client, migration)));
        return made;
      },
      listener,
    );
    for (const repair of repairs) listener.repaired?.(repair);
    return pending.map(({ name }) => name);
  } catch (error) {
    if (error instanceof SetupError) throw error;
    const state = systemCodeOf(error);
    throw state === insufficientPrivilege || state === noSchema
      ? await rightsError(client, error, pending)
      : new SetupError(
          `The database could not be migrated: ${isUnresponsive(error) ? unresponsiveText : errorText(error)}`,
          {
            cause: error,
          },
        );
  } finally {
    await close();
  }
}

/** What tells these migrations from any others: a database that has applied them is the same wherever it was made. */
export async function digestOfMigrations(): Promise<string> {
  const digest = createHash('sha256');
  for (const { name, sql } of await readMigrations(checkedIn)) digest.update(JSON.stringify([name, sql]));
  return digest.digest('hex');
}

/** Applies a migration, and returns what it has repaired. */
async function apply(client: pg.ClientBase, { name, sql, findings }: Migration): Promise<string[]> {
  const repairs = await readFindings(client, findings);
  await queryLong(client, sql).catch((error: Error) => {
    throw Object.assign(new Error(`${name}: ${error.message}${detailOf(error)}`, { cause: error }), {
      code: systemCodeOf(error),
    });
  });
  await client.query(
    `INSERT INTO "_prisma_migrations" (id, checksum, migration_name, finished_at, applied_steps_count)
     VALUES ($1, $2, $3, now(), 1)`,
    [randomUUID(), createHash('sha256').update(sql).digest('hex'), name],
  );
  return repairs;
}

/** Rejects a server's database that is somebody else's. That of the embedded engine never is. */
async function rejectForeignTables(client: pg.Client, migrations: readonly Migration[]): Promise<void> {
  const found = await findForeignTables(client, isAmong(migrations));
  if (found) throw new SetupError(`DATABASE_URL cannot be used: ${found.says}. ${found.advice}`);
}

const isAmong = (migrations: readonly Migration[]) => (name: string) =>
  migrations.some((migration) => migration.name === name);

/** What is said of a server's database that is somebody else's, which this only reads; undefined of any other. */
export async function readForeignTables(client: pg.Client) {
  return findForeignTables(client, isAmong(await readMigrations(checkedIn)));
}

/**
 * `?schema=` is Prisma's own: PostgreSQL does not know it, and the tables would be made in another schema.
 * @throws {SetupError} where the URL has it.
 */
export function rejectSchemaParameter(url: string, setting: ServerSetting = 'DATABASE_URL'): void {
  const schema = new URLSearchParams(url.split('?')[1]).get('schema');
  if (schema && schema !== 'public') {
    throw new SetupError(
      `${setting} has ?schema=${schema}, which only Prisma knows: write ?options=-c%20search_path%3D${schema} instead.`,
    );
  }
}

/** PostgreSQL's code for what a role may not do. */
const insufficientPrivilege = '42501';
/** What it says where the search_path leads to no schema. */
const noSchema = '3F000';

/** Says which role lacks what, and what to do. */
async function rightsError(
  client: pg.ClientBase,
  error: unknown,
  pending: readonly Migration[],
): Promise<SetupError> {
  await client.query('ROLLBACK');
  const isNew = pending.length > 0 && (await readApplied(client)).size === 0;
  const problem = isNew ? await findSchemaProblem(client) : undefined;
  if (problem)
    return new SetupError(`DATABASE_URL cannot be used: ${problem.says}. ${problem.advice}`, {
      cause: error,
    });
  const { rows } = await client.query<{ role: string }>('SELECT current_user AS role');
  const role = JSON.stringify(rows[0]?.role);
  return new SetupError(
    pending.length === 0
      ? `The role ${role} may not read which migrations are applied: ${errorText(error)}. Grant it SELECT on "_prisma_migrations".`
      : `The role ${role} may not apply the pending migrations ${pending.map(({ name }) => name).join(', ')}: ${errorText(error)}. Run \`npx dovetail migrate\` with a DATABASE_URL of the role that owns the tables.`,
    { cause: error },
  );
}

/** What PostgreSQL adds to an error, such as the key of a row that there are two of. */
function detailOf(error: Error): string {
  return 'detail' in error && typeof error.detail === 'string' ? ` (${error.detail})` : '';
}

export interface Progress {
  /** How many of this version's migrations the database has. */
  readonly applied: number;
  readonly pending: readonly string[];
  /** Those that the database has of a later version. */
  readonly unknown: readonly string[];
}

/** How far the database has come, which this only reads. */
export async function readProgress(client: pg.ClientBase): Promise<Progress> {
  const migrations = await readMigrations(checkedIn);
  const applied = await readApplied(client);
  const pending = migrations.map(({ name }) => name).filter((name) => !applied.delete(name));
  return { applied: migrations.length - pending.length, pending, unknown: [...applied] };
}

/** Those of the migrations that the database does not have. */
async function readPending(client: pg.ClientBase, migrations: readonly Migration[]): Promise<Migration[]> {
  const applied = await readApplied(client);
  const pending = migrations.filter(({ name }) => !applied.delete(name));
  if (applied.size > 0) throw new Error(`it has migrations of a later version: ${[...applied].join(', ')}`);
  return pending;
}

async function readApplied(client: pg.ClientBase): Promise<Set<string>> {
  const entries = await readLedger(client);
  return new Set(entries.filter(({ isApplied }) => isApplied).map(({ name }) => name));
}

/**
 * What the migration that is next will find that does not fit, and what will become of it. What a later one finds nobody
 * knows before.
 */
export async function readRepairs(client: pg.ClientBase): Promise<string[]> {
  const [next] = await readPending(client, await readMigrations(checkedIn));
  return readFindings(client, next?.findings);
}

async function readFindings(client: pg.ClientBase, findings: string | undefined): Promise<string[]> {
  if (findings === undefined) return [];
  const { rows } = await queryLong<{ what: string; number: number }>(client, findings);
  return rows.map(({ what, number }) => `${what}: ${number}`);
}

interface Migration {
  readonly name: string;
  readonly sql: string;
  /** The query for what the migration repairs, if it repairs anything: `what` in words, and the `number` of records. */
  readonly findings: string | undefined;
}

/** The migrations, oldest first. */
async function readMigrations(folder: URL): Promise<Migration[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const names = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  return Promise.all(
    names.sort().map(async (name) => ({
      name,
      sql: await readFile(new URL(`${name}/migration.sql`, folder), 'utf8'),
      findings: await readFile(new URL(`${name}/repairs.sql`, folder), 'utf8').catch(() => undefined),
    })),
  );
}
