/** The cluster of `ops/cluster`, run from its files as processes of this machine, with PostgreSQL servers of its own. */

import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import { postJson, rest } from '../support/gateway.ts';
import { queryOnce } from '../support/postgres.ts';
import { endProcesses, type ServedGateway, serve } from '../support/processes.ts';
import { listOf, recordOf } from '../support/restResponses.ts';
import { runHere } from '../support/runHere.ts';
import { createLocalCluster, type LocalCluster, missing, password } from './localCluster.ts';

let cluster: LocalCluster;
const gateways: ServedGateway[] = [];
/** Several tokens of one user: the load balancer chooses a gateway by the token. */
const tokens: string[] = [];

beforeAll(async () => {
  if (missing.length > 0) return;
  cluster = await createLocalCluster();
  for (const name of ['gateway-1', 'gateway-2'] as const) {
    const port = cluster.address(name).split(':')[1] ?? '';
    gateways.push(await serve({ ...settingsOf(name), PORT: port, METRICS_PORT: '0', LOG_LEVEL: 'info' }));
  }
  // The balancer looks every two seconds, and finds one of the gateways before the other.
  const bothServe = async () => {
    await get('/dtt', undefined, 401);
    expect(gateways.map(requestsOf)).not.toContain(0);
  };
  await vi.waitFor(bothServe, { timeout: 20_000, interval: 100 });
  await runHere(['demo'], settingsOf('gateway-1'));
  while (tokens.length < 4) {
    const { stdout } = await runHere(
      ['token', 'create', '--user', 'demo', '--name', `another ${tokens.length}`],
      settingsOf('gateway-1'),
    );
    tokens.push(/dvt_[\w-]+/.exec(stdout)?.[0] ?? '');
  }
}, 120_000);

afterAll(async () => {
  await endProcesses();
  await cluster?.close();
});

beforeEach(({ skip }) => {
  skip(missing.length > 0, `${missing.join(', ')} is not installed`);
});

it('sends requests with the same token to one gateway, and requests without a token to both', async () => {
  const byToken: number[][] = [];
  for (const token of tokens) byToken.push(await servedBy(4, () => get('/dtt', token, 200)));
  expect(byToken.map((counts) => counts.toSorted())).toEqual(tokens.map(() => [0, 4]));
  expect(await servedBy(20, () => get('/dtt', undefined, 401))).not.toContain(0);
});

it('sends the requests of all tokens to the other gateway when one has stopped', async () => {
  const [stopped, running] = gateways;
  stopped?.child.kill('SIGTERM');
  await stopped?.exit;
  const before = requestsOf(running);
  for (const token of tokens) await get('/dtt', token, 200);
  // The log is written in blocks, so that lines of earlier requests may be among the new ones.
  await expect.poll(() => requestsOf(running) - before).toBeGreaterThanOrEqual(tokens.length);
});

it('leads to the standby that is promoted when the primary is lost', async () => {
  const [token = ''] = tokens;
  const { data } = listOf(await get('/dtt/templates?limit=100', token, 200));
  const active = data.find(({ isActive }) => isActive);
  await cluster.losePrimary();
  await query('standby-1', 'SELECT pg_promote()');
  // Commits wait for the other standby, which follows the new primary from here on.
  await query('standby-1', `SELECT pg_create_physical_replication_slot('standby_2')`);
  const port = cluster.address('standby-1').split(':')[1];
  await query(
    'standby-2',
    `ALTER SYSTEM SET primary_conninfo = 'host=127.0.0.1 port=${port} user=replicator password=${password}'`,
  );
  await query('standby-2', 'SELECT pg_reload_conf()');
  const activate = () => postJson(balancer(), token, `/dtt/templates/${active?.id}`, { isActive: true });
  await expect.poll(async () => (await activate()).status, { timeout: 30_000 }).toBe(200);
  const { id } = recordOf(await get('/dtt/templates/active', token, 200));
  expect(id).toBe(active?.id);
});

/** The settings of a gateway in compose.yaml, with the addresses of this machine. */
function settingsOf(name: 'gateway-1' | 'gateway-2'): Record<string, string> {
  const { services } = parse(readFileSync('ops/cluster/compose.yaml', 'utf8'), { merge: true });
  const settings = Object.entries(services[name].environment).map(([setting, value]) => [
    setting,
    cluster.here(String(value).replace(/\$\{\w+:-([^}]*)\}/g, '$1')),
  ]);
  return Object.fromEntries(settings);
}

const balancer = () => ({ url: `http://${cluster.address('balancer')}` });

/** Sends a request through the load balancer. */
async function get(path: string, token: string | undefined, status: number) {
  const response = await rest(balancer(), token, path);
  expect(response.status).toBe(status);
  return response;
}

/** Makes requests until there were so many, and returns how many of them each gateway has logged. */
async function servedBy(times: number, request: () => Promise<unknown>): Promise<number[]> {
  const before = gateways.map(requestsOf);
  for (let time = 0; time < times; time++) await request();
  const counts = () => gateways.map((gateway, index) => requestsOf(gateway) - (before[index] ?? 0));
  await expect.poll(() => counts().reduce((sum, count) => sum + count)).toBe(times);
  return counts();
}

function requestsOf(gateway: ServedGateway | undefined): number {
  return gateway?.output.stderr.match(/"endpoint":"rest"/g)?.length ?? 0;
}

const query = (service: 'standby-1' | 'standby-2', sql: string) =>
  queryOnce(`postgresql://postgres:${password}@${cluster.address(service)}/postgres`, sql);
