/** Positions across a failover: a primary with one standby that is promoted, and gateways connected to either. */

import { afterAll, expect, it } from 'vitest';
import { createAccount } from '../../support/accounts.ts';
import { startCluster } from '../../support/cluster.ts';
import { openAt, openTestGateway, postJson, rest, type TestGateway } from '../../support/gateway.ts';

const name = 'things';
const cluster = await startCluster(1, { fsync: 'off' });
const standby = cluster.standbys[0] ?? expect.fail('there is no standby');
await cluster.createDatabase(name);
const database = await openAt(`${cluster.primary.url}/${name}`);
const alice = await createAccount(database.client, 'alice');
await database.close();
await cluster.isReplayed();
/** The address of the primary, which leads to the standby later, through a proxy of its own. */
const address = await cluster.primary.openTcpProxy(name);
const line = await standby.openTcpProxy(name);
const gateways: TestGateway[] = [];

async function start(url: string): Promise<TestGateway> {
  const gateway = await openTestGateway(await openAt(url));
  gateways.push(gateway);
  await expect.poll(() => gateway.feed.listening).toBe(true);
  return gateway;
}

afterAll(async () => {
  for (const gateway of gateways) await gateway.close();
  await cluster.stop();
});

/** The active template by the gateway, whose response may be cached. */
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

it('after a failover a request with a position of the new primary gets data that has it, or a 503', async () => {
  const [first, second, third] = alice.dttTemplates;
  const gateway = await start(address.url);
  // Writes from here on are lost, and their positions are beyond that at which the standby is promoted.
  standby.upstream.hold();
  for (const table of ['one', 'two'])
    await cluster.primary.query(`CREATE TABLE ${table} (); SELECT pg_switch_wal()`);
  const lost = await activate(gateway, first);
  expect(await activeOf(gateway, lost)).toBe(first);

  await standby.promote();
  const other = await start(`${standby.url}/${name}`);
  const forked = await activate(other, second);
  // The gateway is still connected to the old primary.
  expect(await activeOf(gateway, forked)).toBe(503);
  expect(await activeOf(gateway)).toBe(first);

  await cluster.primary.stop('immediate');
  address.leadTo(Number(new URL(line.url).port));
  await expect.poll(() => activeOf(gateway, forked)).toBe(second);
  await expect.poll(() => gateway.feed.listening).toBe(true);
  expect([await activeOf(gateway), await activeOf(gateway, lost)]).toEqual([second, second]);

  // It has received all changes that it has shown; then it receives none for a moment.
  expect(await activeOf(gateway)).toBe(second);
  line.deafen();
  const position = await activate(other, third);
  expect(await activeOf(gateway)).toBe(second);
  expect(await activeOf(gateway, position)).toBe(third);
  line.release();
});
