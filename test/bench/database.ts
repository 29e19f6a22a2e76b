/** Starts a PostgreSQL server for one run of the benchmark, and loads the data. */

import { readFile } from 'node:fs/promises';
import pg from 'pg';
import { startPostgres } from '../support/postgres.ts';

export type BenchDatabase = Awaited<ReturnType<typeof startDatabase>>;

/** Usual settings for a server of this size, except for `fsync`, since waiting for the disk would hide most differences. */
const settings = {
  full_page_writes: 'off',
  shared_buffers: '512MB',
  effective_cache_size: '2GB',
  work_mem: '16MB',
  random_page_cost: '1.1',
  max_wal_size: '4GB',
  checkpoint_timeout: '30min',
  max_connections: '200',
  // Queries of this size gain nothing from JIT compilation, which PostgreSQL 18 would sometimes use.
  jit: 'off',
};

export async function startDatabase() {
  const postgres = await startPostgres(settings);
  await postgres.createDatabase('bench');
  const url = `${postgres.url}/bench`;
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  pool.on('error', () => {});
  return {
    url,
    /** Runs SQL of the benchmark itself. */
    query: (sql: string, values: unknown[]) => pool.query(sql, values),
    /** Runs one of the SQL files beside this module, and updates the planner's statistics. */
    async load(file: string) {
      await pool.query(await readFile(new URL(`../../../${file}`, import.meta.url), 'utf8'));
      await pool.query('VACUUM ANALYZE');
    },
    async close() {
      await pool.end();
      await postgres.stop();
    },
  };
}
