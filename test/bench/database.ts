/** Starts a PostgreSQL server for one run of the benchmark, and loads the data. */

import { readFile } from 'node:fs/promises';
import pg from 'pg';
import { startPostgres } from '../support/postgres.ts';

export interface BenchDatabase {
  readonly url: string;
  /** Runs SQL of the benchmark itself. */
  query<Row extends pg.QueryResultRow>(sql: string, values?: unknown[]): Promise<Row[]>;
  /** Runs one of the SQL files beside this module, and updates the planner's statistics. */
  load(file: string): Promise<void>;
  close(): Promise<void>;
}

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

export async function startDatabase(): Promise<BenchDatabase> {
  const postgres = await startPostgres(settings);
  await postgres.createDatabase('bench');
  const url = `${postgres.url}/bench`;
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  pool.on('error', () => {});
  return {
    url,
    query: async (sql, values) => (await pool.query(sql, values)).rows,
    async load(file) {
      await pool.query(await readFile(new URL(`../../../${file}`, import.meta.url), 'utf8'));
      await pool.query('VACUUM ANALYZE');
    },
    async close() {
      await pool.end();
      await postgres.stop();
    },
  };
}
