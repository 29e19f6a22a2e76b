/** Opening a database on a server: what is rejected, how its sessions are configured, and that they are closed. */

import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { joinDatabase, openDatabase, type PoolLimits } from '../../src/database/database.ts';
import { message } from '../../src/database/embedded/protocol.ts';
import { migrate } from '../../src/database/migrate.ts';
import { isUnresponsive } from '../../src/database/session.ts';
import { errorText, SetupError } from '../../src/errors.ts';
import { openTestDatabase, type TestDatabase } from '../support/gateway.ts';
import { openSilentServer } from '../support/silent.ts';
import { openTcpProxy } from '../support/tcpProxy.ts';

let database: TestDatabase;
let url: string;
beforeAll(async () => {
  database = await openTestDatabase();
  url = database.pool.options.connectionString ?? '';
});
afterAll(() => database?.close());

const open = (bounds?: PoolLimits, at = url) =>
  openDatabase({ DATABASE_URL: at, DATA_DIR: tmpdir() }, bounds);

/** How many sessions on the server belong to what a test has opened. */
async function sessions(): Promise<number> {
  const { rows } = await database.pool.query<{ count: number }>(
    `SELECT count(*)::int FROM pg_stat_activity
     WHERE datname = current_database() AND application_name = 'opened'`,
  );
  return rows[0]?.count ?? 0;
}

/** The URL of the database, with the application name by which `sessions` counts. */
function named(parameters: Record<string, string> = {}): string {
  const address = new URL(url);
  for (const [name, value] of Object.entries({ application_name: 'opened', ...parameters }))
    address.searchParams.set(name, value);
  return address.href;
}

describe('a server', () => {
  it('whose version is too old for the migrations is rejected', async () => {
    // The search path has this function before the one of PostgreSQL that returns the version.
    await database.pool.query(
      `CREATE SCHEMA old; CREATE FUNCTION old.current_setting(text) RETURNS text LANGUAGE sql RETURN '149999'`,
    );
    await expect(open(undefined, named({ options: '-c search_path=old,pg_catalog' }))).rejects.toThrow(
      new SetupError('DATABASE_URL names a PostgreSQL 14, but takes 15 or later.'),
    );
    await expect.poll(sessions).toBe(0);
  });

  it('that sends nothing when a client connects is given up after five seconds', async () => {
    const silent = createServer((socket) => onTestFinished(() => void socket.destroy()));
    silent.listen(0, '127.0.0.1');
    await once(silent, 'listening');
    onTestFinished(() => void silent.close());
    const { port } = silent.address() as AddressInfo;
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const opening = open(undefined, `postgres://me:secret@127.0.0.1:${port}/none`);
    let state = 'opening';
    const settled = opening.catch((error: Error) => {
      state = error.message;
    });
    await once(silent, 'connection');
    vi.advanceTimersByTime(4_999);
    await new Promise(setImmediate);
    expect(state).toBe('opening');
    vi.advanceTimersByTime(1);
    await settled;
    expect(state).toMatch(/^DATABASE_URL is "postgres:\/\/me:[^"]*", but cannot be reached: .*timeout/);
    expect(state).not.toContain('secret');
  });

  it.each([
    ['opened', (url: string) => open(undefined, url)],
    ['migrated', (url: string) => migrate({ connectionString: url })],
  ])(
    'that accepts a connection and then does not respond is given up after 15 s when it is %s',
    async (_, use) => {
      const silent = await openSilentServer();
      onTestFinished(silent.close);
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
      onTestFinished(() => void vi.useRealTimers());
      let state = 'opening';
      const settled = use(silent.url).catch((error: Error) => {
        state = error.message;
      });
      await silent.asked;
      vi.advanceTimersByTime(14_999);
      await new Promise(setImmediate);
      expect(state).toBe('opening');
      vi.advanceTimersByTime(1);
      await settled;
      expect(state).toMatch(
        /the database took the connection and then did not respond in time\. Look whether/,
      );
      expect(state).not.toMatch(/secret|Query read timeout/);
    },
  );

  it('that closes the connection at the first query is reported as unreachable, without ending the process', async () => {
    const greeting = Buffer.concat([message('R', Buffer.alloc(4)), message('Z', Buffer.from('I'))]);
    const closing = createServer((socket) =>
      socket
        .on('error', () => {})
        .once('data', () => socket.write(greeting, () => socket.once('data', () => socket.destroy()))),
    );
    closing.listen(0, '127.0.0.1');
    await once(closing, 'listening');
    onTestFinished(() => void closing.close());
    const { port } = closing.address() as AddressInfo;
    await expect(open(undefined, `postgres://me@127.0.0.1:${port}/none`)).rejects.toThrow(
      'cannot be reached: Connection terminated unexpectedly',
    );
  });

  it('whose database has migrations of a later version is rejected, and no connection stays open', async () => {
    await database.pool.query(
      `INSERT INTO _prisma_migrations (id, checksum, migration_name, finished_at) VALUES ('x', 'x', '2999_later', now())`,
    );
    await expect(open(undefined, named())).rejects.toThrow('migrations of a later version: 2999_later');
    await database.pool.query(`DELETE FROM _prisma_migrations WHERE id = 'x'`);
    await expect.poll(sessions).toBe(0);
  });
});

describe('an opened database', () => {
  it.each([
    ['requests, with timeouts', { connections: 2, statement: 1_234 }, '1234ms', '1min'],
    ['commands, without timeouts', undefined, '0', '0'],
  ])('has sessions for %s', async (_, bounds, timeout, idle) => {
    const opened = await open(bounds, named());
    onTestFinished(() => opened.close());
    const { rows } = await opened.pool.query(
      `SELECT current_setting('statement_timeout') AS timeout,
         current_setting('idle_in_transaction_session_timeout') AS idle`,
    );
    expect(rows).toEqual([{ timeout, idle }]);
    // The sessions that have checked and migrated the database are closed.
    await expect.poll(sessions).toBe(1);
    expect(opened.embedded).toBe(false);
    // These settings matter when the server is gone without closing its connections.
    expect(opened.pool.options).toMatchObject({
      max: bounds ? 2 : 10,
      connectionTimeoutMillis: 5_000,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
    });
    expect(opened.pool.options.query_timeout).toBe(bounds ? undefined : 60_000);
  });

  it('fails a statement of a request when the server says nothing for a second longer than it may take', async () => {
    const proxy = await openTcpProxy(database);
    onTestFinished(proxy.close);
    const opened = await open({ connections: 1, statement: 200 }, proxy.url);
    onTestFinished(() => opened.close());
    await opened.sql.run('SELECT 1', []);
    proxy.hold();
    const began = performance.now();
    await expect(opened.sql.run('SELECT 1', [])).rejects.toSatisfy(isUnresponsive);
    expect(performance.now() - began).toBeGreaterThan(1_190);
  });

  it('replaces an idle connection that is lost', async () => {
    const opened = await open({ connections: 1, statement: 10_000 }, named());
    onTestFinished(() => opened.close());
    const pid = async () =>
      (await opened.sql.run<{ pid: number }>('SELECT pg_backend_pid() AS pid', []))[0]?.pid;
    const before = await pid();
    // An error event without a listener would fail the run.
    const lost = once(opened.pool, 'error');
    await database.pool.query('SELECT pg_terminate_backend($1)', [before]);
    await lost;
    expect(await pid()).not.toBe(before);
  });

  it('prepares its statements with names', async () => {
    const opened = await open({ connections: 1, statement: 10_000 }, named());
    onTestFinished(() => opened.close());
    const find = () =>
      opened.sql.run<{ name: string }>(
        `SELECT name FROM pg_prepared_statements WHERE statement LIKE '%' || $1`,
        ['$1'],
      );
    await find();
    expect(await find()).toEqual([{ name: expect.stringMatching(/^dovetail_/) }]);
  });
});

it('joinDatabase connects to the server of DATABASE_URL, even if an embedded engine runs in DATA_DIR', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'dovetail-database-'));
  const engine = createServer((socket) => socket.on('error', () => {}).end());
  engine.listen(join(folder, '.s.PGSQL.5432'));
  await once(engine, 'listening');
  onTestFinished(async () => {
    engine.close();
    await rm(folder, { recursive: true, force: true });
  });
  const joined = await joinDatabase({ DATABASE_URL: url, DATA_DIR: folder });
  onTestFinished(() => joined.close());
  expect(await joined.sql.count('User', {})).toBe(0);
});

it('errorText contains every reason of an error that has several', () => {
  const several = new AggregateError([new Error('refused at ::1'), new Error('refused at 127.0.0.1'), 7]);
  expect(errorText(several)).toBe('refused at ::1; refused at 127.0.0.1; 7');
});
