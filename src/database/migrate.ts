/** Brings a database to the schema of `prisma/migrations`, with the ledger that Prisma's own tools keep. */

import { readdir, readFile } from 'node:fs/promises';
import { PrismaPg } from '@prisma/adapter-pg';
import { bindMigrationAwareSqlAdapterFactory } from '@prisma/driver-adapter-utils';
import * as engineModule from '@prisma/schema-engine-wasm/schema_engine_bg';
import pg from 'pg';
import { SetupError } from '../config.ts';

const folder = new URL('../../prisma/', import.meta.url);

/** Any number will do that nothing else on the server uses: the lock under which one process migrates. */
const migrationLock = 0xd07e7a11;

/** The part of WebAssembly that is used here; Node's type declarations leave it out. */
declare const WebAssembly: {
  instantiate(
    bytes: Uint8Array,
    imports: object,
  ): Promise<{ instance: { exports: Record<string, unknown> } }>;
};

const filters = { externalTables: [], externalEnums: [] };

/**
 * Applies the pending migrations and returns their names, oldest first. Gateways that start at the same
 * moment take turns.
 * @throws {SetupError} when a migration failed, now or at an earlier start.
 */
export async function migrate(connection: pg.ClientConfig): Promise<string[]> {
  const migrations = await readMigrations();
  const client = new pg.Client(connection);
  await client.connect();
  try {
    await client.query('SELECT pg_advisory_lock($1)', [migrationLock]);
    if (await isUpToDate(client, migrations)) return [];
    const engine = await startEngine(connection);
    const { appliedMigrationNames } = await engine.applyMigrations({
      migrationsList: {
        baseDir: 'prisma/migrations',
        lockfile: { path: 'migration_lock.toml', content: 'provider = "postgresql"' },
        shadowDbInitScript: '',
        migrationDirectories: migrations.map(({ name, sql }) => ({
          path: name,
          migrationFile: { path: 'migration.sql', content: { tag: 'ok', value: sql } },
        })),
      },
      filters,
    });
    return appliedMigrationNames;
  } catch (error) {
    throw new SetupError(`The database could not be migrated: ${messageOf(error)}`, { cause: error });
  } finally {
    await client.end();
  }
}

/** The SQL that leads from one version of `schema.prisma` to another. */
export async function draftMigration(connection: pg.ClientConfig, from: string, to: string): Promise<string> {
  const engine = await startEngine(connection);
  const datamodel = (content: string) => ({
    tag: 'schemaDatamodel' as const,
    files: [{ path: 'schema.prisma', content }],
  });
  const { stdout } = await engine.diff({
    from: from === '' ? { tag: 'empty' } : datamodel(from),
    to: datamodel(to),
    script: true,
    exitCode: null,
    filters,
  });
  return stdout ?? '';
}

async function readMigrations() {
  const entries = await readdir(new URL('migrations/', folder), { withFileTypes: true });
  const names = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  return Promise.all(
    names.sort().map(async (name) => ({
      name,
      sql: await readFile(new URL(`migrations/${name}/migration.sql`, folder), 'utf8'),
    })),
  );
}

/** Spares most starts the schema engine, which takes longer to load than everything else here. */
async function isUpToDate(client: pg.Client, migrations: readonly { name: string }[]): Promise<boolean> {
  const { rows } = await client.query<{ ledger: string | null }>(
    `SELECT to_regclass('_prisma_migrations')::text AS ledger`,
  );
  if (!rows[0]?.ledger) return false;
  const applied = await client.query<{ name: string }>(
    'SELECT migration_name AS name FROM _prisma_migrations WHERE finished_at IS NOT NULL AND rolled_back_at IS NULL',
  );
  const names = new Set(applied.rows.map((row) => row.name));
  return migrations.every(({ name }) => names.has(name));
}

/** The engine of `prisma migrate`, as WebAssembly: the native one would have to be downloaded. */
async function startEngine(connection: pg.ClientConfig): Promise<engineModule.SchemaEngine> {
  const wasm = new URL(
    import.meta.resolve('@prisma/schema-engine-wasm/schema_engine_bg').replace(/\.js$/, '.wasm'),
  );
  const { instance } = await WebAssembly.instantiate(await readFile(wasm), {
    './schema_engine_bg.js': { ...engineModule },
  });
  // What wasm-bindgen's own loader does, for a runtime that cannot import .wasm files.
  const glue = engineModule as unknown as { __wbg_set_wasm(exports: unknown): void };
  glue.__wbg_set_wasm(instance.exports);
  (instance.exports.__wbindgen_start as () => void)();
  return engineModule.SchemaEngine.new(
    { datamodels: [['schema.prisma', await readFile(new URL('schema.prisma', folder), 'utf8')]] },
    () => {},
    bindMigrationAwareSqlAdapterFactory(new PrismaPg(connection)),
  );
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
