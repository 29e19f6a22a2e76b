/** An address that leads to another server than before, while earlier connections go on. Another database of the server stands for it. */

import pg from 'pg';
import { expect, it, onTestFinished, vi } from 'vitest';
import { watchServer } from '../../src/database/identity.ts';
import { openAt } from '../support/gateway.ts';
import { pgbouncerVersion, startPgBouncer } from '../support/pgbouncer.ts';
import { databaseWith } from '../support/setUp.ts';
import { openTcpProxy } from '../support/tcpProxy.ts';

const { database } = await databaseWith();
const { database: other } = await databaseWith();

const bounds = { connections: 5, statement: 5_000 };

async function open(url: string, direct?: string) {
  const opened = await openAt(url, bounds, direct);
  onTestFinished(opened.close);
  const report = vi.fn();
  const feed = await opened.openChangeFeed({ report });
  onTestFinished(feed.close);
  expect(feed.listening).toBe(true);
  return {
    opened,
    feed,
    report,
    read: () => opened.sql.run<{ name: string }>('SELECT current_database() AS name', []),
  };
}

it('what is read there is not cached, and the connections to the server before are ended', async () => {
  const line = await openTcpProxy(database);
  onTestFinished(line.close);
  const { opened, feed, report, read } = await open(line.url);
  await read();
  const held = opened.sql.run('SELECT pg_sleep(30)', []);
  line.redirect(other);
  const [first] = await Promise.all([read(), expect(held).rejects.toThrow('leads to another server')]);
  expect(first).toEqual([{ name: new URL(other.pool.options.connectionString ?? '').pathname.slice(1) }]);
  // At once, and not when the next heartbeat is due.
  expect(feed.listening).toBe(false);
  // The feed follows.
  await expect.poll(() => feed.listening, { timeout: 10_000 }).toBe(true);
  expect(report.mock.calls).toEqual([['the address leads to another server now'], [undefined]]);
  expect(await read()).toEqual(first);
});

it('connections that have ended, and listeners after their signal, are let go', async () => {
  const watch = watchServer();
  const client = new pg.Client(database.pool.options);
  await client.connect();
  await watch.add(client);
  await client.end();
  const [ending, heard] = [vi.spyOn(client.connection.stream, 'destroy'), vi.fn()];
  const leaving = new AbortController();
  watch.subscribe(heard, leaving.signal);
  leaving.abort();
  watch.note({ isReadOnly: false, server: 'another' });
  expect([...ending.mock.calls, ...heard.mock.calls]).toEqual([]);
});

it('what is read there through a pooler is not cached', async ({ skip }) => {
  skip(pgbouncerVersion === undefined, 'PgBouncer is not installed');
  const line = await openTcpProxy(database);
  onTestFinished(line.close);
  const pooler = await startPgBouncer(line.url, 'transaction', ['default_pool_size = 20']);
  onTestFinished(pooler.close);
  const { opened, feed, read } = await open(pooler.url, database.pool.options.connectionString);
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
