/** Load shedding before a real database: which requests wait, which are rejected, and how long a statement may take. */

import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { graphqlOnce, needsEngine, openAt, openTestGateway, postJson, rest } from '../support/gateway.ts';
import { databaseWith, gatewayBeside, holdTransaction } from '../support/setUp.ts';
import { openTcpProxy } from '../support/tcpProxy.ts';

const { database, alice, bob } = await databaseWith('alice', 'bob');

/** Has all statements of a kind wait: for a lock, or on the embedded engine for their turn. */
const hold = (sql: string) => holdTransaction(database.pool, sql);

async function timed<T>(asking: Promise<T>): Promise<{ response: T; took: number }> {
  const began = performance.now();
  return { response: await asking, took: performance.now() - began };
}

const maxWaiting = 3;
const gateway = await gatewayBeside(database, { settings: { MAX_WAITING: String(maxWaiting) } });
it('while as many requests wait as MAX_WAITING allows, a request that needs the database gets a 503 at once, cached responses are served, and all waiting requests are served in the end', async () => {
  const cachedQuery = '{ viewer { username } }';
  expect((await rest(gateway, alice.token, '/users/me')).status).toBe(200);
  // Twice, since a response is cached the second time.
  for (let time = 0; time < 2; time++) await graphqlOnce(gateway, alice.token, cachedQuery);
  const before = await rest(gateway, alice.token, '/dtt/templates/active');

  const { pool } = gateway.database;
  // All connections are opened before, since the embedded engine opens none while a transaction runs.
  await Promise.all(Array.from({ length: pool.options.max ?? 0 }, () => pool.query('SELECT pg_sleep(0.01)')));
  const release = await hold('LOCK TABLE "DttSession"');
  let asked = 0;
  const askFor = (count: number) =>
    Array.from({ length: count }, () => rest(gateway, alice.token, `/dtt/sessions?offset=${asked++}`));
  const running = askFor(pool.options.max ?? 0);
  await expect.poll(() => pool.idleCount).toBe(0);
  const waiting = askFor(maxWaiting);
  // These have arrived when this has its response, and count as a burst for a moment longer.
  await fetch(`${gateway.url}/healthz`);
  await sleep(150);

  const [template] = alice.dttTemplates;
  const began = performance.now();
  const rejected = [
    postJson(gateway, alice.token, `/dtt/templates/${template}`, { isActive: true }),
    rest(gateway, alice.token, '/dtt/sessions?limit=1'),
  ];
  await Promise.all(rejected);
  for (const response of await Promise.all(rejected)) {
    expect(response).toMatchObject({ status: 503, body: { ok: false, error: 'Too busy; try again' } });
    expect(response.headers.get('Retry-After')).toBe('1');
  }
  const { status, headers, errors } = await graphqlOnce(
    gateway,
    alice.token,
    '{ dttSessions { totalCount } }',
  );
  expect({ status, retryAfter: headers.get('Retry-After'), errors }).toEqual({
    status: 503,
    retryAfter: '1',
    errors: [{ message: 'Too busy; try again', extensions: { code: 'SERVICE_UNAVAILABLE' } }],
  });
  expect(performance.now() - began).toBeLessThan(4_000);
  // Another user may wait beside one who has the whole queue, with a request whose token has to be looked up.
  running.push(rest(gateway, bob.token, '/users/me'), ...waiting);

  expect((await rest(gateway, alice.token, '/users/me')).status).toBe(200);
  expect(await graphqlOnce(gateway, alice.token, cachedQuery)).toHaveProperty('data.viewer');
  expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
  // Only the lookup of the token waits for a connection.
  expect(pool.waitingCount).toBeLessThanOrEqual(1);

  await release();
  for (const { status } of await Promise.all(running)) expect(status).toBe(200);
  expect((await rest(gateway, bob.token, '/users/me')).status).toBe(200);
  expect((await rest(gateway, alice.token, '/dtt/templates/active')).body).toEqual(before.body);
});

describe('a statement', () => {
  needsEngine('postgres', 'the embedded engine has no timers, and no locks of other sessions');

  const open = (url = database.pool.options.connectionString ?? '') =>
    openAt(url, { connections: 2, statement: 300 });

  it('that waits for a lock is cancelled after the statement timeout, on the server as well', async () => {
    const gateway = await openTestGateway(await open());
    const [template] = alice.dttTemplates;
    const activate = () => postJson(gateway, alice.token, `/dtt/templates/${template}`, { isActive: true });
    const release = await hold(`SELECT FROM "User" WHERE id = ${alice.userId} FOR UPDATE`);
    const { response, took } = await timed(activate());
    expect(response).toMatchObject({ status: 500, body: { ok: false, error: 'Internal server error' } });
    expect(took).toBeLessThan(10_000);
    const { rowCount } = await database.pool.query(
      `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    expect(rowCount).toBe(0);
    expect((await rest(gateway, alice.token, '/dtt/sessions')).status).toBe(200);
    await release();
    expect((await activate()).status).toBe(200);
    await gateway.close();
  });

  it('that gets no response from the database fails after the timeout', async () => {
    const proxy = await openTcpProxy(database);
    const gateway = await openTestGateway(await open(proxy.url));
    expect((await rest(gateway, alice.token, '/users/me')).status).toBe(200);
    proxy.hold();
    const { response, took } = await timed(rest(gateway, alice.token, '/dtt/sessions?limit=2'));
    expect(response.status).toBe(503);
    expect(took).toBeLessThan(10_000);
    proxy.release();
    await expect
      .poll(async () => (await rest(gateway, alice.token, '/dtt/sessions?limit=3')).status)
      .toBe(200);
    await gateway.close();
    await proxy.close();
  });
});
