/** Opening a database on a server: what is rejected, how its sessions are configured, and that they are closed. */

import { createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { describe, expect, it, onTestFinished, type TestContext, vi } from 'vitest';
import type { PoolLimits } from '../../src/database/database.ts';
import { message } from '../../src/database/embedded/server.ts';
import { createSession, endWhenSilent, isUnresponsive } from '../../src/database/session.ts';
import { openAt } from '../support/gateway.ts';
import { listen } from '../support/listen.ts';
import { databaseWith } from '../support/setUp.ts';
import { openTcpProxy } from '../support/tcpProxy.ts';

const { database } = await databaseWith();
const url = database.pool.options.connectionString ?? '';

const open = (bounds?: PoolLimits, at = url) => openAt(at, bounds);

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
  it.each([
    ['149999', 'DATABASE_URL names a PostgreSQL 14, but takes 15 or later'],
    // Not too old: it is rejected later, since it has the same text for its encoding.
    ['150000', 'the encoding of the database'],
  ])('of the version %s is rejected, for that if it is too old', async (version, message) => {
    // The search path has this function before the one of PostgreSQL that returns the version.
    await database.pool.query(
      `CREATE SCHEMA IF NOT EXISTS old;
       CREATE OR REPLACE FUNCTION old.current_setting(text) RETURNS text LANGUAGE sql RETURN '${version}'`,
    );
    const opening = open(undefined, named({ options: '-c search_path=old,pg_catalog' }));
    await expect(opening).rejects.toThrow(message);
    await expect.poll(sessions).toBe(0);
  });

  it.each([
    ['sends nothing when a client connects', 5, false, /"postgres:.*cannot be used: .*timeout/],
    [
      'accepts a connection and then does not respond',
      15,
      true,
      /the database took the connection and then did not respond in time$/,
    ],
  ])('that %s is given up after %i seconds', async (_, seconds, greets, says) => {
    const silent = await openSilentServer(greets);
    onTestFinished(silent.close);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    let state = 'opening';
    const settled = open(undefined, silent.url).catch((error: Error) => {
      state = error.message;
    });
    await silent.asked;
    vi.advanceTimersByTime(seconds * 1_000 - 1);
    await new Promise(setImmediate);
    expect(state).toBe('opening');
    vi.advanceTimersByTime(1);
    await settled;
    expect(state).toMatch(says);
    expect(state).not.toMatch(/secret|Query read timeout/);
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
});

/** In milliseconds. */
const longest = 800;

async function openClient({ onTestFinished }: TestContext) {
  const proxy = await openTcpProxy(database);
  onTestFinished(proxy.close);
  const client = new pg.Client({ connectionString: proxy.url });
  await client.connect();
  const lost: Error[] = [];
  client.on('error', (error) => lost.push(error));
  endWhenSilent(client, longest);
  return { proxy, client, lost };
}

describe('a connection whose silence is limited', () => {
  it.concurrent('is ended, and its statement fails, when the server does not respond', async (test) => {
    const { proxy, client, lost } = await openClient(test);
    // The timer has fired once before, in vain.
    await sleep(1.5 * longest);
    await client.query('SELECT 1');
    proxy.hold();
    const began = performance.now();
    const failure = await client.query('SELECT 2').catch((error: unknown) => error);
    test.expect(isUnresponsive(failure)).toBe(true);
    test.expect(performance.now() - began).toBeGreaterThan(longest - 10);
    test.expect(lost).toEqual([failure]);
    test.expect(client.connection.stream.destroyed).toBe(true);
  });

  it.concurrent('stays open while no statement runs, also in a transaction', async (test) => {
    const { client, lost } = await openClient(test);
    await sleep(1.3 * longest);
    await client.query('BEGIN');
    await sleep(1.3 * longest);
    test.expect((await client.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
    test.expect(lost).toEqual([]);
    await client.end();
  });

  it.concurrent('gives each statement the whole time, whenever the one before was sent', async (test) => {
    const { client, lost } = await openClient(test);
    for (let run = 0; run < 2; run++) {
      await sleep(0.6 * longest);
      await client.query('SELECT pg_sleep($1)', [(0.6 * longest) / 1000]);
    }
    test.expect(lost).toEqual([]);
    await client.end();
  });
});

it('a session is closed by the client when the server does not close its connection', async () => {
  const silent = await openSilentServer();
  onTestFinished(silent.close);
  const { client, close } = createSession({ connectionString: silent.url });
  await client.connect();
  let closed = false;
  const closing = close().then(() => {
    closed = true;
  });
  await new Promise(setImmediate);
  expect(closed).toBe(false);
  await closing;
  expect(client.connection.stream.destroyed).toBe(true);
});

/**
 * A server that accepts connections and then never responds, like a paused pooler. It does not respond to their end either.
 * @param greets whether clients can connect. Otherwise they get nothing at all, and `asked` settles when the first connects.
 */
async function openSilentServer(greets = true) {
  const greeting = Buffer.concat([message('R', Buffer.alloc(4)), message('Z', Buffer.from('I'))]);
  const sockets = new Set<Socket>();
  let ask = () => {};
  const asked = new Promise<void>((settle) => {
    ask = settle;
  });
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    if (greets) socket.once('data', () => socket.write(greeting, () => socket.once('data', ask)));
    else ask();
  });
  const { host } = new URL(await listen(server));
  return {
    url: `postgres://me:secret@${host}/none`,
    asked,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
