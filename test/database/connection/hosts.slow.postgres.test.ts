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

/** What most tests look at, and leave as it is. */
let still: Awaited<ReturnType<typeof startPair>>;
beforeAll(async () => {
  still = await startPair();
});
afterAll(() => still?.cluster.stop());

/** A pair of the test's own, one of which takes over. */
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

/** Where connections of the pool go, of as many as it may have. */
const portsOf = async ({ pool }: Database) =>
  new Set(await Promise.all(Array.from({ length: 4 }, () => portOf(pool).catch(() => undefined))));

describe('several hosts', () => {
  it.each(['', '?target_session_attrs=primary', '?target_session_attrs=read-write'])(
    'are looked through for the one that takes writes: %s',
    async (query) => {
      const { primary, standby } = still;
      const database = await open(urlOf([standby, primary], query));
      expect(await portsOf(database)).toEqual(new Set([primary.port]));
      // What `pg` knows of the list is its first host alone.
      expect(database.pool.options).toHaveProperty(
        'connectionString',
        expect.stringContaining(`:${standby.port}/`),
      );
    },
  );

  it('lead to the standby once it was promoted, the change feed too, and never back to the primary that it replaced', async () => {
    const { cluster, primary, standby } = await startChanging();
    const database = await open(urlOf([primary, standby]));
    const feed = await database.openChangeFeed();
    undo.push(feed.close);
    expect(feed.listening).toBe(true);
    await cluster.isReplayed();
    await primary.stop('immediate');
    await expect(database.pool.query('SELECT 1')).rejects.toThrow();
    // A standby is no place to go to.
    await expect(database.pool.query('SELECT 1')).rejects.toThrow(
      new RegExp(`127.0.0.1:${standby.port}: it is a standby`),
    );
    await standby.promote();
    await expect.poll(() => portsOf(database), { timeout: 10_000 }).toEqual(new Set([standby.port]));
    await expect.poll(() => feed.listening, { timeout: 10_000 }).toBe(true);
    const changes: unknown[] = [];
    feed.subscribe((change) => changes.push(change));
    await database.pool.query(`INSERT INTO "User" (username) VALUES ('after')`);
    await expect
      .poll(() => changes)
      .toContainEqual({ kind: 'user', userId: expect.any(Number), table: 'User' });
    // As though nothing had happened: it takes writes, and has none of what was written since.
    await primary.start();
    await standby.stop('immediate');
    const tries = async () => database.pool.query('SELECT 1').then(() => 'well', String);
    await expect
      .poll(tries, { timeout: 10_000 })
      .toMatch(
        new RegExp(
          `127.0.0.1:${primary.port}: it was the primary before, on timeline 1: another server has taken over, on timeline 2`,
        ),
      );
    await standby.start();
    await expect.poll(() => portsOf(database), { timeout: 10_000 }).toEqual(new Set([standby.port]));
    // One that starts now knows nothing of that, and looks at both.
    expect(await portsOf(await open(urlOf([primary, standby])))).toEqual(new Set([standby.port]));
  });

  it('are used one at a time: with the first connection elsewhere, all that are left behind are closed', async () => {
    const { cluster, primary, standby } = await startChanging();
    const database = await open(urlOf([primary, standby]));
    const feed = await database.openChangeFeed();
    undo.push(feed.close);
    await cluster.isReplayed();
    const held = await database.pool.connect();
    const lost = new Promise((settle) => held.on('error', settle));
    const running = held.query('SELECT pg_sleep(60)').catch(String);
    // Both take writes, and the one before takes no new connections: nobody has told the gateway to leave it.
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
    await expect.poll(() => feed.listening, { timeout: 10_000 }).toBe(true);
    expect(feed.reconnects).toBe(1);
  });

  it('that cannot be used are named, each with its reason, and without a password', async () => {
    const { primary, standby } = still;
    const url = urlOf([{ ...primary, port: 1 }, standby]);
    await expect(open(url)).rejects.toThrow(
      `DATABASE_URL is "${url.replace(':postgres@', ':***@')}", but none of its hosts can be used: 127.0.0.1:1: cannot be reached: connect ECONNREFUSED 127.0.0.1:1; 127.0.0.1:${standby.port}: it is a standby. Start the server, or correct DATABASE_URL; unset it for the embedded database.`,
    );
    await expect(open(urlOf([standby], '?target_session_attrs=primary'))).rejects.toThrow(
      /it is a standby\. Name the primary as well, or promote a standby\.$/,
    );
  });

  it('are passed over where read-write is asked for and sessions take no writes', async () => {
    const { primary } = still;
    await primary.query(`ALTER DATABASE ${name} SET default_transaction_read_only = on`);
    undo.push(() => primary.query(`ALTER DATABASE ${name} RESET default_transaction_read_only`));
    await expect(open(urlOf([primary], '?target_session_attrs=read-write'))).rejects.toThrow(
      /it takes no writes \(default_transaction_read_only\)/,
    );
    expect(await portsOf(await open(urlOf([primary], '?target_session_attrs=primary')))).toEqual(
      new Set([primary.port]),
    );
  });

  it('that say nothing are not waited for once another takes writes', async () => {
    const { primary } = still;
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

it('an address that has come to lead to a standby is left for another host', async () => {
  const { primary, standby } = still;
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
  it('is reached without a question more', async () => {
    const { primary } = still;
    const server = serverOf(`${primary.url}/${name}`);
    expect(server).toEqual({ connectionString: `${primary.url}/${name}` });
    expect(createClient(server).constructor).toBe(pg.Client);
  });
});
