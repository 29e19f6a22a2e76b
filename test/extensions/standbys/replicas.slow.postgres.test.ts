/** Reads from standbys: a real primary with two real standbys, and gateways over them. */

import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { createToken, revokeToken } from '../../../src/auth/tokens.ts';
import { createSignal } from '../../../src/database/waiting.ts';
import { at } from '../../coherence/watched.ts';
import { type Account, createAccount } from '../../support/accounts.ts';
import { type ClusterServer, type Standby, startCluster } from '../../support/cluster.ts';
import { graphqlOnce, openAt, rest, type TestGateway } from '../../support/gateway.ts';
import { closeSockets, connectSocket } from '../../support/sockets.ts';
import type { TcpProxy } from '../../support/tcpProxy.ts';
import { openStandbyGateway, type StandbyGateway } from './gateways.ts';

const name = 'things';
const cluster = await startCluster(2, { log_statement: 'all' });
await cluster.createDatabase(name);
const open = (url = `${cluster.primary.url}/${name}`) => openAt(url);
const database = await open();
const alice = await createAccount(database.client, 'alice');
const bobby = await createAccount(database.client, 'bobby');
const accounts = [alice, bobby];
const { token: manager } = await createToken(database.pool, 'alice', 'manager', { scope: 'manage' });
await database.close();
await cluster.isReplayed();
/** The standbys that the tests read from. */
const pair: readonly Standby[] = [...cluster.standbys];
const lines = await Promise.all(pair.map((standby) => standby.openTcpProxy(name)));
afterAll(() => cluster.stop());

const held: TcpProxy[] = [];
/** The gateways that a test has opened. */
let gateways: StandbyGateway[] = [];
/** The gateway of the tests that need no options. */
let usual: StandbyGateway | undefined;
afterAll(() => usual?.close());
afterEach(async () => {
  for (const line of held.splice(0)) line.release();
  // One that a test has stopped.
  for (const standby of pair) await standby.start();
  await resume();
  for (const gateway of gateways) await gateway.close();
  gateways = [];
  await cluster.isReplayed(pair);
});

/** @param url leads to the primary; as the superuser by default. */
async function openGatewayAt(
  url?: string,
  standbys: readonly string[] = lines.map((line) => line.url),
): Promise<StandbyGateway> {
  const gateway = await openStandbyGateway(await open(url), standbys);
  gateways.push(gateway);
  return gateway;
}

/** A gateway over standbys that are all healthy: the usual one, or one over these. */
async function start(standbys?: readonly string[]): Promise<StandbyGateway> {
  const gateway = (standbys ? undefined : usual) ?? (await openGatewayAt(undefined, standbys));
  if (!standbys && usual !== gateway) {
    usual = gateway;
    gateways = gateways.filter((each) => each !== gateway);
  }
  await expect.poll(() => healthyOf(gateway)).toBe(standbys?.length ?? pair.length);
  // The standbys replay what the start has written, after which no account has to read at the primary.
  for (const account of accounts) await readsFromStandby(gateway, account);
  return gateway;
}

/** Holds a line until the end of the test. A release drops its connections, so others stay as they are. */
function hold(line: TcpProxy): void {
  held.push(line);
  line.hold();
}

const pause = () => Promise.all(pair.map((standby) => standby.pauseReplay()));
const resume = () => Promise.all(pair.map((standby) => standby.resumeReplay()));

/** Begins a transaction on the primary, with these statements. If the test fails, it must not hold up the other tests. */
async function begin(...statements: readonly string[]): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: `${cluster.primary.url}/${name}` });
  await client.connect();
  onTestFinished(() => client.end());
  for (const statement of ['BEGIN', ...statements]) await client.query(statement);
  return client;
}

/** Pauses the standbys at a lock of the templates. Its transaction is over on the primary. */
async function pauseWithLock(): Promise<void> {
  const locking = await begin(
    'LOCK TABLE "DttTemplate" IN ACCESS EXCLUSIVE MODE',
    'SELECT pg_current_xact_id()',
  );
  await cluster.isReplayed(pair);
  await pause();
  await locking.query('COMMIT');
}

const statusesOf = ({ replicas }: StandbyGateway) => replicas.addresses.map(({ status }) => status());
const healthyOf = ({ replicas }: StandbyGateway) =>
  replicas.addresses.filter(({ current }) => current() !== undefined).length;

/** How many statements that read records of viewers are in the log of a server. */
const readsAt = (server: ClusterServer) =>
  (server.log().match(/(execute|statement).*FROM "Dtt/g) ?? []).length;

async function readsDuring(act: () => Promise<unknown>) {
  const servers = [cluster.primary, ...pair];
  const before = servers.map(readsAt);
  await act();
  await sleep(50);
  const [primary = 0, ...standbys] = servers.map((server, index) => readsAt(server) - (before[index] ?? 0));
  return { primary, standbys: standbys.reduce((sum, each) => sum + each, 0) };
}

/** A template of the account that is not active now. */
const anotherOf = ({ dttTemplates }: Account, active?: number) =>
  dttTemplates.find((id) => id !== active) ?? 0;

/** Makes the text of each query unique, so that no response is cached. */
let asked = 0;
async function activeOf(gateway: TestGateway, { token }: Account, headers: Record<string, string> = {}) {
  const query = `{ q${asked++}: dttTemplates { nodes { databaseId isActive } } }`;
  const { data, errors } = await graphqlOnce(gateway, token, query, {}, headers);
  if (errors) throw new Error(JSON.stringify(errors));
  const [list] = Object.values<{ nodes: { databaseId: number; isActive: boolean }[] }>(data);
  return list?.nodes.find(({ isActive }) => isActive)?.databaseId;
}

/** Waits until the account reads from a standby. */
async function readsFromStandby(gateway: StandbyGateway, account: Account): Promise<void> {
  await expect
    .poll(async () => {
      const { primary } = gateway.replicas.counts;
      await activeOf(gateway, account);
      return gateway.replicas.counts.primary - primary;
    })
    .toBe(0);
}

const setActive = (account: Account, template: number) =>
  cluster.primary.query(
    `UPDATE "User" SET "activeTemplateId" = ${template} WHERE id = ${account.userId}`,
    name,
  );

/** A change that is not announced. */
const setSilently = (account: Account, template: number) =>
  cluster.primary.query(
    `ALTER TABLE "User" DISABLE TRIGGER USER; UPDATE "User" SET "activeTemplateId" = ${template} WHERE id = ${account.userId}; ALTER TABLE "User" ENABLE ALWAYS TRIGGER announce_update`,
    name,
  );

/** Has a gateway read the position after a change of alice's, and get it only when the test says so. */
async function holdPosition({ database: { sql }, replicas }: StandbyGateway): Promise<() => void> {
  const { promise: released, settle: release } = createSignal();
  const taken = vi.fn();
  const { run } = sql;
  vi.spyOn(sql, 'run').mockImplementation(async (...given) => {
    const rows = await run(...given);
    taken();
    await released;
    return rows;
  });
  replicas.changed(alice.userId);
  await expect.poll(() => taken).toHaveBeenCalled();
  return release;
}

describe('reads', () => {
  it('go to standbys and not to the primary: those of each viewer to one, and those of several viewers to all', async () => {
    const gateway = await start();
    const readsOf = async (account: Account) => {
      const before = gateway.replicas.addresses.map(({ reads }) => reads);
      for (let time = 0; time < 5; time++) await activeOf(gateway, account);
      return gateway.replicas.addresses.map(({ reads }, index) => reads - at(before, index));
    };
    const counts: number[][] = [];
    const reads = await readsDuring(async () => {
      for (const account of accounts) counts.push(await readsOf(account));
    });
    expect(reads.primary).toBe(0);
    expect(reads.standbys).toBeGreaterThanOrEqual(10);
    expect(counts.flat().filter((count) => count === 0)).toHaveLength(2);
    expect(counts[0]).toEqual(counts[1]?.toReversed());
  });

  it('are as new as what the primary has shown, even if that was never announced', async () => {
    const gateway = await start();
    await activeOf(gateway, alice);
    await pause();
    await setActive(alice, at(alice.dttTemplates, 1));
    await expect.poll(() => activeOf(gateway, alice)).toBe(at(alice.dttTemplates, 1));
    // The standbys receive the log up to here, and nothing after it.
    await cluster.isReceived(pair);
    for (const { upstream } of pair) hold(upstream);
    await setSilently(alice, at(alice.dttTemplates, 2));
    expect(await activeOf(gateway, alice)).toBe(at(alice.dttTemplates, 2));
    await resume();
    for (const standby of pair)
      await expect
        .poll(() => standby.query('SELECT pg_last_wal_replay_lsn() = pg_last_wal_receive_lsn() AS "isDone"'))
        .toEqual([{ isDone: true }]);
    expect(await activeOf(gateway, alice)).toBe(at(alice.dttTemplates, 2));
  });

  it.each([
    ['read', '{ viewer { currentToken { id } activeDttTemplate { databaseId } } }'],
    ['written', 'mutation { createApiToken(name: "new") { viewer { activeDttTemplate { databaseId } } } }'],
  ])('are as new as what Prisma’s client has %s on the primary', async (_, document) => {
    const gateway = await start();
    // The first use of a token is written to it.
    const template = anotherOf(alice, await activeOf(gateway, { ...alice, token: manager }));
    await readsFromStandby(gateway, alice);
    await pause();
    await setSilently(alice, template);
    const { data } = await graphqlOnce(gateway, manager, document);
    if (data.createApiToken)
      expect(data.createApiToken.viewer.activeDttTemplate).toEqual({ databaseId: template });
    expect(await activeOf(gateway, alice)).toBe(template);
  });

  it('are as new as a change that is made while the position of another is read', async () => {
    const gateway = await start();
    const template = anotherOf(alice, await activeOf(gateway, alice));
    const heard = vi.fn();
    const release = await holdPosition(gateway);
    await cluster.isReplayed(pair);
    await pause();
    gateway.feed.subscribe(heard);
    await setActive(alice, template);
    await expect.poll(() => heard).toHaveBeenCalled();
    release();
    expect(await activeOf(gateway, alice)).toBe(template);
  });

  it('are as new as the primary while announcements do not arrive', async () => {
    const gateway = await start();
    const template = anotherOf(alice, await activeOf(gateway, alice));
    vi.spyOn(gateway.feed, 'listening', 'get').mockReturnValue(false);
    await pause();
    await setSilently(alice, template);
    expect(await activeOf(gateway, alice)).toBe(template);
  });

  it('are as new as what the standby has shown that was at the address before', async () => {
    const address = await at(pair, 0).openTcpProxy(name);
    const gateway = await start([address.url]);
    const template = anotherOf(alice, await activeOf(gateway, alice));
    await at(pair, 1).pauseReplay();
    await setSilently(alice, template);
    await expect.poll(() => activeOf(gateway, alice)).toBe(template);
    address.leadTo(at(pair, 1).port);
    await at(pair, 0).stop('immediate');
    // No read at the primary in between, after which the other standby would have to be newer anyway.
    await expect.poll(() => healthyOf(gateway), { interval: 1 }).toBe(0);
    await expect.poll(() => healthyOf(gateway)).toBe(1);
    expect(await activeOf(gateway, alice)).toBe(template);
    await at(pair, 1).resumeReplay();
    await readsFromStandby(gateway, alice);
  });
});

it.each([
  ['on a standby', true],
  ['on the primary', false],
])('a token that is revoked while a read waits for a position is refused %s', async (_, isHealthy) => {
  const gateway = await start();
  const { id, token } = await createToken(gateway.database.pool, 'alice', 'revoked');
  // The first use of a token is written to it, after which it is looked up once more.
  await activeOf(gateway, { ...alice, token });
  await sleep(200);
  await readsFromStandby(gateway, { ...alice, token });
  const release = await holdPosition(gateway);
  if (isHealthy) await cluster.isReplayed(pair);
  else await pause();
  const reading = graphqlOnce(gateway, token, '{ dttDevices { nodes { databaseId } } }');
  await sleep(100);
  const heard = vi.fn();
  gateway.feed.subscribe(heard);
  await revokeToken(gateway.database.pool, id);
  await expect.poll(() => heard).toHaveBeenCalled();
  release();
  expect(await reading).toMatchObject({ status: 401 });
});

it('a new user is found at once, even if the user was not announced', async () => {
  const gateway = await start();
  await pause();
  const database = await open();
  await database.pool.query('ALTER TABLE "User" DISABLE TRIGGER announce_insert');
  const { id } = await database.client.user.create({
    data: { username: 'newcomer', subscriptionTier: 'ultra' },
  });
  const { token } = await createToken(database.pool, 'newcomer', 'new');
  const { status, body } = await rest(gateway, token, '/users/me');
  expect([status, body.data]).toEqual([200, expect.objectContaining({ id })]);
  await database.pool.query('ALTER TABLE "User" ENABLE ALWAYS TRIGGER announce_insert');
  await database.close();
});

describe('a standby', () => {
  it.each([
    ['is stopped', (standby: Standby) => standby.stop('immediate')],
    ['does not respond', async (standby: Standby) => hold(at(lines, pair.indexOf(standby)))],
  ])(
    'delays a read by less than four seconds when it %s, and is healthy again afterwards',
    async (_, fail) => {
      const gateway = await start();
      for (const account of accounts) await activeOf(gateway, account);
      const standby = at(pair, 0);
      const failing = fail(standby);
      const took = await Promise.all(
        accounts.map(async (account) => {
          const began = performance.now();
          await activeOf(gateway, account);
          return performance.now() - began;
        }),
      );
      await failing;
      expect(Math.max(...took)).toBeLessThan(4_000);
      await expect.poll(() => healthyOf(gateway)).toBe(1);
      await standby.start();
      at(lines, 0).release();
      await expect.poll(() => healthyOf(gateway)).toBe(2);
      expect(gateway.log).toEqual([]);
    },
  );

  it('costs each read one retry when it holds a lock whose transaction it does not replay to the end', async () => {
    const gateway = await start([at(lines, 0).url]);
    await pauseWithLock();
    const began = performance.now();
    await Promise.all([activeOf(gateway, alice), activeOf(gateway, bobby)]);
    expect(performance.now() - began).toBeLessThan(4_000);
    expect(gateway.replicas.counts.retried).toBeGreaterThan(0);
    await expect.poll(() => statusesOf(gateway)[0]).toMatch(/lock timeout/);
    expect(gateway.log).toEqual([]);
  });

  it('is not read from when its URL leads to a primary or to another database', async () => {
    const gateway = await openGatewayAt(undefined, [
      `${cluster.primary.url}/${name}`,
      `${at(pair, 0).url}/postgres`,
    ]);
    await expect
      .poll(() => statusesOf(gateway))
      .toEqual([
        'it is no standby, or no longer: it takes writes of its own',
        expect.stringContaining('no copy of the database'),
      ]);
  });

  it('is not read from when it is of another cluster', async () => {
    const elsewhere = await open();
    const { run } = elsewhere.sql;
    vi.spyOn(elsewhere.sql, 'run').mockImplementation(async (...given) =>
      (await run(...given)).map((row) => ('system' in row ? { ...row, system: '1' } : row)),
    );
    const gateway = await openStandbyGateway(elsewhere, [at(lines, 0).url]);
    gateways.push(gateway);
    await expect.poll(() => statusesOf(gateway)[0]).toContain('no copy of the database');
  });

  it('is not read from once it is promoted', async () => {
    const third = await cluster.addStandby();
    const gateway = await start([`${third.url}/${name}`, at(lines, 1).url]);
    const template = await activeOf(gateway, alice);
    await third.promote();
    const another = anotherOf(alice, template);
    await third.query(`UPDATE "User" SET "activeTemplateId" = ${another} WHERE id = ${alice.userId}`, name);
    for (let time = 0; time < 20; time++) expect(await activeOf(gateway, alice)).toBe(template);
    await expect.poll(() => statusesOf(gateway)[0]).toMatch(/it takes writes of its own/);
    // A standby of the promoted server is on the same timeline.
    const fourth = await cluster.addStandby(third);
    const other = await openGatewayAt(undefined, [`${fourth.url}/${name}`]);
    await expect.poll(() => statusesOf(other)).toEqual([expect.stringContaining('timeline 2')]);
    expect(await activeOf(other, alice)).toBe(template);
    await third.stop('immediate');
    await fourth.stop('immediate');
  });
});

it('a subscription shows a change that standbys have not replayed', async () => {
  const gateway = await start();
  const socket = await connectSocket(gateway, alice.token);
  const query = 'subscription { activeDttTemplate { databaseId } }';
  socket.send({ id: '1', type: 'subscribe', payload: { query } });
  const first = await socket.next();
  expect(first).toMatchObject({ type: 'next' });
  const now = Number(Object(first).payload.data.activeDttTemplate?.databaseId ?? 0);
  await pause();
  const template = at(alice.dttTemplates, at(alice.dttTemplates, 0) === now ? 1 : 0);
  await setActive(alice, template);
  const data = { activeDttTemplate: { databaseId: template } };
  expect(await socket.next()).toMatchObject({ type: 'next', payload: { data } });
  await resume();
  closeSockets();
});

it('a Dovetail-Position that is invented affects no other viewer, and one that cannot be parsed is rejected', async () => {
  const gateway = await start();
  const counts = await readsDuring(async () => {
    await activeOf(gateway, alice, { 'Dovetail-Position': '1-FFFFFFFF/FFFFFFFF' });
    await activeOf(gateway, bobby);
  });
  // The gateway limits it to the position of the primary, which the standby reaches.
  expect(counts.standbys).toBeGreaterThan(0);
  await readsFromStandby(gateway, alice);
  const response = await fetch(`${gateway.url}/api/v1/dtt/templates`, {
    headers: { Authorization: `Bearer ${alice.token}`, 'Dovetail-Position': 'nonsense' },
  });
  expect([response.status, (await response.json()).error]).toEqual([
    400,
    'Dovetail-Position must be what the response to a write had, such as 1-0/16B3748, or be left out',
  ]);
});
