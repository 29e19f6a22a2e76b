/** Migrations while gateways serve requests, and by roles that have timeouts for their sessions. */

import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type MigrationListener, migrate } from '../../src/database/migrate.ts';
import { openTestDatabase, type TestDatabase } from '../support/gateway.ts';
import { openTcpProxy } from '../support/tcpProxy.ts';

let database: TestDatabase;
let folder: string;
beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database?.close());
beforeEach(async () => {
  await database.pool.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE TABLE rows (id int)');
  await database.pool.query(
    `CREATE TABLE "_prisma_migrations" (id text, checksum text, migration_name text, finished_at timestamptz,
       rolled_back_at timestamptz, applied_steps_count int);
     INSERT INTO "_prisma_migrations" (migration_name, finished_at) VALUES ('1_first', now())`,
  );
  folder = await mkdtemp(join(tmpdir(), 'dovetail-migrations-'));
});
afterEach(() => rm(folder, { recursive: true }));

/** Applies this statement as a migration. */
async function apply(
  sql: string,
  {
    connection = database.pool.options,
    ...listener
  }: MigrationListener & { connection?: pg.ClientConfig } = {},
): Promise<string[]> {
  for (const [name, text] of Object.entries({ '1_first': '', '2_second': sql })) {
    await mkdir(join(folder, name), { recursive: true });
    await writeFile(join(folder, name, 'migration.sql'), text);
  }
  return migrate(connection, pathToFileURL(`${folder}/`), listener);
}

async function connect(options = ''): Promise<pg.Client> {
  const client = new pg.Client({ ...database.pool.options, application_name: 'psql', options });
  client.on('error', () => {});
  await client.connect();
  return client;
}

/** How many sessions wait for a lock on a table of this database. Other tests use other databases of the server. */
async function countWaiting(): Promise<number | null> {
  const { rowCount } = await database.pool.query(
    'SELECT FROM pg_locks WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())',
  );
  return rowCount;
}

it('the migration that announces updates row by row waits for nobody who reads', async () => {
  await database.pool.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public');
  const name = '20261124000000_announce_updates_by_row';
  const filter = (path: string) => !path.includes(name);
  await cp('prisma/migrations', folder, { recursive: true, filter });
  await migrate(database.pool.options, pathToFileURL(`${folder}/`));
  const reader = await connect();
  await reader.query('BEGIN; SELECT FROM "User"');
  expect(await migrate(database.pool.options)).toContain(name);
  await reader.end();
});

describe('a migration that needs a lock which another session holds', () => {
  it('does not block requests, reports which session holds the lock, and is applied once the lock is free', async () => {
    const holder = await connect();
    const reader = await connect('-c statement_timeout=8s');
    const { rows } = await holder.query('SELECT pg_backend_pid() AS pid');
    await holder.query('BEGIN; SELECT FROM rows');
    const reports: string[] = [];
    const applying = apply('ALTER TABLE rows ADD COLUMN name text', { blocked: (why) => reports.push(why) });
    await expect.poll(countWaiting).toBe(1);
    // This waits behind the migration, and fails at its statement_timeout.
    await reader.query('SELECT FROM rows');
    await expect.poll(() => reports).toEqual([`psql, idle in transaction (process ${rows[0].pid})`]);
    await holder.query('COMMIT');
    expect(await applying).toEqual(['2_second']);
    await Promise.all([holder.end(), reader.end()]);
  });

  it('is retried after a deadlock', async () => {
    await database.pool.query('CREATE TABLE others (id int)');
    const holder = await connect('-c deadlock_timeout=1min');
    await holder.query('BEGIN; LOCK TABLE others');
    let failed = 0;
    const applying = apply(
      'SET LOCAL deadlock_timeout = 100; ALTER TABLE rows ADD COLUMN name text; ALTER TABLE others ADD COLUMN name text',
      { blocked: () => failed++ },
    );
    await expect.poll(countWaiting).toBe(1);
    await holder.query('LOCK TABLE rows; COMMIT');
    expect(await applying).toEqual(['2_second']);
    expect(failed).toBe(1);
    await holder.end();
  });
});

it('a migration ends on the server when the connection of its process is lost', async () => {
  const line = await openTcpProxy(database);
  const applying = apply('SELECT pg_sleep(60)', { connection: { connectionString: line.url } }).catch(
    () => 'failed',
  );
  const running = async () => {
    const { rowCount } = await database.pool.query(
      `SELECT FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)'`,
    );
    return rowCount;
  };
  await expect.poll(running).toBe(1);
  await line.close();
  await expect.poll(running).toBe(0);
  expect(await applying).toBe('failed');
});

it.each(['statement_timeout', 'lock_timeout', 'transaction_timeout'])(
  'a migration is not aborted by the %s that its role has for requests',
  async (name) => {
    const limits = `-c ${name}=300ms`;
    const { rowCount } = await database.pool.query('SELECT FROM pg_settings WHERE name = $1', [name]);
    if (rowCount === 0) return;
    const holder = await connect();
    await holder.query('BEGIN; SELECT FROM rows');
    const releasing = new Promise((settle) => setTimeout(settle, 600)).then(() => holder.query('COMMIT'));
    expect(
      await apply('ALTER TABLE rows ADD COLUMN name text; SELECT pg_sleep(0.6)', {
        connection: { ...database.pool.options, options: limits },
      }),
    ).toEqual(['2_second']);
    await releasing;
    await holder.end();
  },
);
