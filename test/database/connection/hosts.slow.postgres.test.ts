/** A gateway whose DATABASE_URL names several hosts: a real primary and its standby, one of which takes over. */

import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createClient } from '../../../src/database/connection/client.ts';
import { serverOf } from '../../../src/database/connection/server.ts';
import { type Database, openDatabase } from '../../../src/database/database.ts';
import { type ClusterServer, startCluster } from '../../support/cluster.ts';

const name = 'app';
const undo: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const each of undo.splice(0).reverse()) await each();
});

async function startPair() {
  const cluster = await startCluster(1, { fsync: 'off' });
  const { primary, standbys } = cluster;
  const [standby] = standbys;
  if (!standby) throw new Error('there is no standby');
  await cluster.createDatabase(name);
  await cluster.isReplayed();
  return { cluster, primary, standby };
}

/** The servers that most tests share, and leave unchanged. */
let shared: Awaited<ReturnType<typeof startPair>>;
beforeAll(async () => {
  shared = await startPair();
});
afterAll(() => shared?.cluster.stop());

/** Servers for one test, in which the standby takes over. */
async function startChanging() {
  const pair = await startPair();
  undo.push(pair.cluster.stop);
  return pair;
}

const urlOf = (servers: readonly ClusterServer[], query = '') =>
  `postgresql://postgres:postgres@${servers.map(({ port }) => `127.0.0.1:${port}`).join()}/${name}${query}`;

async function open(url: string): Promise<Database> {
  const database = await openDatabase(
    { DATABASE_URL: url, DATA_DIR: tmpdir() },
    { connections: 4, statement: 5_000 },
  );
  undo.push(database.close);
  return database;
}

const portOf = async (queryable: pg.Pool | pg.Client) => {
  const { rows } = await queryable.query<{ port: number }>(
    `SELECT current_setting('port')::int AS port, pg_sleep(0.01)`,
  );
  return rows[0]?.port;
};

/** The ports that the connections of the pool lead to when it has as many as it may have. */
const portsOf = async ({ pool }: Database) =>
  new Set(await Promise.all(Array.from({ length: 4 }, () => portOf(pool).catch(() => undefined))));

describe('several hosts', () => {
  it.each(['', '?target_session_attrs=primary', '?target_session_attrs=read-write'])(
    'are searched for the one that accepts writes: %s',
    async (query) => {
      const { primary, standby } = shared;
      const database = await open(urlOf([standby, primary], query));
      expect(await portsOf(database)).toEqual(new Set([primary.port]));
      // Of the list, `pg` itself gets the first host only.
      expect(database.pool.options).toHaveProperty(
        'connectionString',
        expect.stringContaining(`:${standby.port}/`),
      );
    },
  );

  it('lead to a promoted standby, also for the change feed, and never back to the primary that it replaced', async () => {
    const { cluster, primary, standby } = await startChanging();
    const database = await open(urlOf([primary, standby]));
    const feed = await database.openChangeFeed();
    undo.push(feed.close);
    expect(feed.listening).toBe(true);
    await cluster.isReplayed();
    await primary.stop('immediate');
    await expect(database.pool.query('SELECT 1')).rejects.toThrow();
    // A standby is rejected.
    await expect(database.pool.query('SELECT 1')).rejects.toThrow(
      new RegExp(`127.0.0.1:${standby.port}: it is a standby`),
    );
    await standby.promote();
    await expect.poll(() => portsOf(database)).toEqual(new Set([standby.port]));
    await expect.poll(() => feed.listening).toBe(true);
    const changes: unknown[] = [];
    feed.subscribe((change) => changes.push(change));
    await database.pool.query(`INSERT INTO "User" (username) VALUES ('after')`);
    await expect
      .poll(() => changes)
      .toContainEqual({ kind: 'user', userId: expect.any(Number), table: 'User' });
    // The previous primary is back: it accepts writes, and lacks everything that was written since.
    await primary.start();
    await standby.stop('immediate');
    const tries = async () => database.pool.query('SELECT 1').then(() => 'well', String);
    await expect
      .poll(tries)
      .toMatch(
        new RegExp(
          `127.0.0.1:${primary.port}: it was the primary before, on timeline 1: another server has taken over, on timeline 2`,
        ),
      );
    await standby.start();
    await expect.poll(() => portsOf(database)).toEqual(new Set([standby.port]));
    // A gateway that starts now has not seen the change, and compares both servers.
    expect(await portsOf(await open(urlOf([primary, standby])))).toEqual(new Set([standby.port]));
  });

  it('are used one at a time: the first connection to another host closes all connections to the previous one', async () => {
    const { cluster, primary, standby } = await startChanging();
    const database = await open(urlOf([primary, standby]));
    const feed = await database.openChangeFeed();
    undo.push(feed.close);
    await cluster.isReplayed();
    const held = await database.pool.connect();
    const lost = new Promise((settle) => held.on('error', settle));
    const running = held.query('SELECT pg_sleep(60)').catch(String);
    // Both accept writes, and the previous one accepts no new connections. The gateway is not notified of the change.
    await standby.promote();
    expect(await portsOf(database)).toEqual(new Set([primary.port]));
    await primary.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`);
    const moved = createClient(database.direct);
    await expect(moved.connect()).rejects.toThrow(/not currently accepting connections/);
    const next = createClient(database.direct);
    await next.connect();
    expect(await portOf(next)).toBe(standby.port);
    expect(await running).toMatch(/Connection terminated/);
    await lost;
    held.release(true);
    await next.end();
    expect(await portsOf(database)).toEqual(new Set([standby.port]));
    await expect.poll(() => feed.listening).toBe(true);
    expect(feed.reconnects).toBe(1);
  });

  it('are named in the error when none can be used, each with its reason, and without a password', async () => {
    const { primary, standby } = shared;
    const url = urlOf([{ ...primary, port: 1 }, standby]);
    await expect(open(url)).rejects.toThrow(
      `DATABASE_URL is "${url.replace(':postgres@', ':***@')}", but none of its hosts can be used: 127.0.0.1:1: cannot be reached: connect ECONNREFUSED 127.0.0.1:1; 127.0.0.1:${standby.port}: it is a standby. Start the server, or correct DATABASE_URL.`,
    );
    await expect(open(urlOf([standby], '?target_session_attrs=primary'))).rejects.toThrow(
      /it is a standby\. Name the primary as well, or promote a standby\.$/,
    );
  });

  it('are skipped when read-write is required and their sessions are read-only', async () => {
    const { primary } = shared;
    await primary.query(`ALTER DATABASE ${name} SET default_transaction_read_only = on`);
    undo.push(() => primary.query(`ALTER DATABASE ${name} RESET default_transaction_read_only`));
    await expect(open(urlOf([primary], '?target_session_attrs=read-write'))).rejects.toThrow(
      /it takes no writes \(default_transaction_read_only\)/,
    );
    expect(await portsOf(await open(urlOf([primary], '?target_session_attrs=primary')))).toEqual(
      new Set([primary.port]),
    );
  });

  it('that do not respond are not waited for once another one accepts writes', async () => {
    const { primary } = shared;
    const line = await primary.openTcpProxy(name);
    line.hold();
    const silent = new URL(line.url).port;
    const server = serverOf(
      `postgresql://postgres:postgres@127.0.0.1:${silent},127.0.0.1:${primary.port}/${name}`,
    );
    const client = createClient(server);
    const began = performance.now();
    await client.connect();
    expect(performance.now() - began).toBeLessThan(2_500);
    expect(await portOf(client)).toBe(primary.port);
    await client.end();
  });
});

it('a host whose address leads to a standby by now is replaced by another host', async () => {
  const { primary, standby } = shared;
  let to = primary.port;
  const sockets = new Set<Socket>();
  const moved = createServer((near) => {
    const far = connect(to, '127.0.0.1');
    for (const socket of [near, far]) sockets.add(socket.on('error', () => {}));
    near.pipe(far).pipe(near);
  });
  moved.listen(0, '127.0.0.1');
  await once(moved, 'listening');
  undo.push(async () => {
    for (const socket of sockets) socket.destroy();
    moved.close();
  });
  const address = moved.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const server = serverOf(urlOf([{ ...primary, port }, primary]));
  const before = createClient(server);
  await before.connect();
  expect(before.port).toBe(port);
  to = standby.port;
  await expect(createClient(server).connect()).rejects.toThrow('it is a standby');
  const after = createClient(server);
  await after.connect();
  expect(after.port).toBe(primary.port);
  await after.end();
});

describe('one host', () => {
  it('is connected to without any check', async () => {
    const { primary } = shared;
    const server = serverOf(`${primary.url}/${name}`);
    expect(server).toEqual({ connectionString: `${primary.url}/${name}` });
    expect(createClient(server).constructor).toBe(pg.Client);
  });
});
