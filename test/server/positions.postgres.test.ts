/** Positions over a failover: a primary with one standby that takes over, and gateways at either. */

import { tmpdir } from 'node:os';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openDatabase } from '../../src/database/database.ts';
import { type Account, createAccount } from '../support/accounts.ts';
import { type Cluster, type Standby, startCluster } from '../support/cluster.ts';
import { openTestGateway, postJson, rest, type TestGateway, withClient } from '../support/gateway.ts';
import type { TcpProxy } from '../support/tcpProxy.ts';

const name = 'things';
let cluster: Cluster;
let standby: Standby;
let alice: Account;
/** The lines of the gateway that has both servers for its hosts. */
let lines: { readonly primary: TcpProxy; readonly standby: TcpProxy };
const gateways: TestGateway[] = [];

async function start(url: string): Promise<TestGateway> {
  const gateway = await openTestGateway(
    withClient(await openDatabase({ DATABASE_URL: url, DATA_DIR: tmpdir() })),
  );
  gateways.push(gateway);
  await expect.poll(() => gateway.feed.listening, { timeout: 10_000 }).toBe(true);
  return gateway;
}

beforeAll(async () => {
  cluster = await startCluster(1, { fsync: 'off' });
  const [only] = cluster.standbys;
  if (!only) throw new Error('there is no standby');
  standby = only;
  await cluster.createDatabase(name);
  const database = withClient(
    await openDatabase({ DATABASE_URL: `${cluster.primary.url}/${name}`, DATA_DIR: tmpdir() }),
  );
  alice = await createAccount(database.client, 'alice');
  await database.close();
  await cluster.isReplayed();
  lines = { primary: await cluster.primary.openTcpProxy(name), standby: await standby.openTcpProxy(name) };
});
afterAll(async () => {
  for (const gateway of gateways) await gateway.close();
  await cluster?.stop();
});

/** What the gateway says is active: in a response that may come out of its cache. */
async function activeOf(gateway: TestGateway, position?: string) {
  const headers = position === undefined ? {} : { 'Dovetail-Position': position };
  const { status, body } = await rest(gateway, alice.token, '/dtt/templates/active', { headers });
  return status === 200 ? Object(body.data).id : status;
}

async function activate(gateway: TestGateway, template: number | undefined): Promise<string> {
  const response = await postJson(gateway, alice.token, `/dtt/templates/${template}`, { isActive: true });
  expect(response.status).toBe(200);
  return response.headers.get('Dovetail-Position') ?? '';
}

it('what was written at the server that has taken over is shown, or the gateway says that it cannot', async () => {
  const [first, second, third] = alice.dttTemplates;
  const [before, after] = [new URL(lines.primary.url), new URL(lines.standby.url)];
  const gateway = await start(
    `postgresql://${before.username}:${before.password}@${before.host},${after.host}/${name}`,
  );
  // What is written from here on is lost, and is further in the log than the other one begins.
  standby.upstream.hold();
  for (const table of ['one', 'two'])
    await cluster.primary.query(`CREATE TABLE ${table} (); SELECT pg_switch_wal()`);
  const lost = await activate(gateway, first);
  expect(await activeOf(gateway, lost)).toBe(first);

  await standby.promote();
  const other = await start(`${standby.url}/${name}`);
  const forked = await activate(other, second);
  // The gateway is still at the one that was replaced.
  expect(await activeOf(gateway, forked)).toBe(503);
  expect(await activeOf(gateway)).toBe(first);

  await cluster.primary.stop('immediate');
  lines.primary.hold();
  await expect.poll(() => activeOf(gateway, forked), { timeout: 20_000 }).toBe(second);
  await expect.poll(() => gateway.feed.listening, { timeout: 20_000 }).toBe(true);
  expect([await activeOf(gateway), await activeOf(gateway, lost)]).toEqual([second, second]);

  // All that it has shown is heard of; then it hears of nothing for a moment.
  expect(await activeOf(gateway)).toBe(second);
  lines.standby.deafen();
  const position = await activate(other, third);
  expect(await activeOf(gateway)).toBe(second);
  expect(await activeOf(gateway, position)).toBe(third);
  lines.standby.release();
}, 60_000);
