/** An address that leads to another server than before, while earlier connections go on. Another database of the server stands for it. */

import { tmpdir } from 'node:os';
import { afterAll, expect, it, onTestFinished } from 'vitest';
import { openDatabase } from '../../src/database/database.ts';
import { openTestDatabase } from '../support/gateway.ts';
import { pgbouncerVersion, startPgBouncer } from '../support/pgbouncer.ts';
import { openTcpProxy } from '../support/tcpProxy.ts';

const [database, other] = [await openTestDatabase(), await openTestDatabase()];
afterAll(async () => {
  await database.close();
  await other.close();
});

const bounds = { connections: 5, statement: 5_000 };

async function open(urls: { DATABASE_URL: string; DATABASE_DIRECT_URL?: string }) {
  const opened = await openDatabase({ ...urls, DATA_DIR: tmpdir() }, bounds);
  onTestFinished(opened.close);
  const feed = await opened.openChangeFeed();
  onTestFinished(feed.close);
  expect(feed.listening).toBe(true);
  return {
    opened,
    feed,
    read: () => opened.sql.run<{ name: string }>('SELECT current_database() AS name', []),
  };
}

it('what is read there is not cached, and the connections to the server before are ended', async () => {
  const line = await openTcpProxy(database);
  onTestFinished(line.close);
  const { opened, feed, read } = await open({ DATABASE_URL: line.url });
  await read();
  const held = opened.sql.run('SELECT pg_sleep(30)', []);
  line.redirect(other);
  const [first] = await Promise.all([read(), expect(held).rejects.toThrow('leads to another server')]);
  expect(first).toEqual([{ name: new URL(other.pool.options.connectionString ?? '').pathname.slice(1) }]);
  // At once, and not when the next heartbeat is due.
  expect(feed.listening).toBe(false);
  // The feed follows.
  await expect.poll(() => feed.listening, { timeout: 10_000 }).toBe(true);
  expect(await read()).toEqual(first);
});

it('what is read there through a pooler is not cached', async ({ skip }) => {
  skip(pgbouncerVersion === undefined, 'PgBouncer is not installed');
  const line = await openTcpProxy(database);
  onTestFinished(line.close);
  const pooler = await startPgBouncer(line.url, 'transaction', ['default_pool_size = 20']);
  onTestFinished(pooler.close);
  const { opened, feed, read } = await open({
    DATABASE_URL: pooler.url,
    DATABASE_DIRECT_URL: database.pool.options.connectionString ?? '',
  });
  const before = await read();
  expect(feed.listening).toBe(true);
  line.redirect(other);
  // Keeps the pooler's connections busy, so that it opens another one.
  const held = Array.from({ length: 4 }, () => opened.sql.run('SELECT pg_sleep(0.5)', []));
  await expect.poll(async () => (await read())[0]?.name).not.toBe(before[0]?.name);
  // At once, and not when the next heartbeat is due.
  expect(feed.listening).toBe(false);
  await Promise.all(held);
});
