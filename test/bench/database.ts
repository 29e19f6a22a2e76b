/** A real PostgreSQL for one run of the benchmark, and the data in it. */

import { readFile } from 'node:fs/promises';
import pg from 'pg';
import { startPostgres } from '../support/postgres.ts';

export interface BenchDatabase {
  readonly url: string;
  /** Runs SQL, for what the benchmark itself has to look up or reset. */
  query<Row extends pg.QueryResultRow>(sql: string, values?: unknown[]): Promise<Row[]>;
  /** Runs one of the SQL files beside this module, and tells the planner about the new rows. */
  load(file: string): Promise<void>;
  close(): Promise<void>;
}

/** As a server of this size would be set up, but for `fsync`: what a disk does would drown most of what is compared. */
const settings = {
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

/** @param others settings that are not as they are here. */
export async function startDatabase(others: Readonly<Record<string, string>> = {}): Promise<BenchDatabase> {
  const postgres = await startPostgres({ ...settings, ...others });
  await postgres.createDatabase('bench');
  const url = `${postgres.url}/bench`;
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  pool.on('error', () => {});
  return {
    url,
    query: async (sql, values) => (await pool.query(sql, values)).rows,
    async load(file) {
      await pool.query(await readFile(new URL(`../../${file}`, import.meta.url), 'utf8'));
      await pool.query('VACUUM ANALYZE');
    },
    async close() {
      await pool.end();
      await postgres.stop();
    },
  };
}
