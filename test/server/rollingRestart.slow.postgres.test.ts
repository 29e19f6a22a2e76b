/** A rolling restart behind a service that notices late which gateways are ready, as Kubernetes' are. */

import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it, onTestFinished } from 'vitest';
import { listen } from '../support/listen.ts';
import { endProcesses, type ServedGateway, serve } from '../support/processes.ts';
import { databaseWith } from '../support/setUp.ts';

const { database, alice } = await databaseWith('alice');
afterEach(endProcesses);

/** How long, in milliseconds, the service leads to a gateway that is no longer ready. */
const unnoticed = 5_000;

/** Opens a port that leads each new connection to the next of its gateways. */
async function openService() {
  const gateways: URL[] = [];
  let turn = 0;
  const server = createServer((near) => {
    const { hostname = '', port } = gateways[turn++ % gateways.length] ?? {};
    const far = connect(Number(port), hostname);
    near.on('error', () => far.destroy());
    far.on('error', () => near.destroy());
    near.pipe(far).pipe(near);
  });
  const url = await listen(server);
  onTestFinished(async () => {
    server.close();
    await once(server, 'close');
  });
  return {
    url,
    /** Leads to the gateway until five seconds after it was ready for the last time. */
    async follow(gateway: string): Promise<void> {
      const added = new URL(gateway);
      gateways.push(added);
      while ((await statusOf(`${gateway}/readyz`)) === 200) await sleep(100);
      await sleep(unnoticed);
      gateways.splice(gateways.indexOf(added), 1);
    },
  };
}

/** @returns 0 if there is no response. */
async function statusOf(url: string, init?: RequestInit): Promise<number> {
  try {
    const response = await fetch(url, init);
    await response.arrayBuffer();
    return response.status;
  } catch {
    return 0;
  }
}

/** Sends one request after the other, of both kinds, on connections that are kept or not. @returns what stops them, and returns all statuses. */
function request(url: string) {
  const statuses: number[] = [];
  let isOver = false;
  const headers = { Authorization: `Bearer ${alice.token}`, 'Content-Type': 'application/json' };
  const [template] = alice.dttTemplates;
  async function repeat(path: string, init: RequestInit): Promise<void> {
    while (!isOver) {
      statuses.push(await statusOf(`${url}/api/v1${path}`, init));
      await sleep(20);
    }
  }
  const activation = { method: 'POST', body: '{"isActive":true}' };
  const all = [{ ...headers, Connection: 'close' }, headers].flatMap((each) => [
    repeat('/users/me', { headers: each }),
    repeat(`/dtt/templates/${template}`, { ...activation, headers: each }),
  ]);
  return async () => {
    isOver = true;
    await Promise.all(all);
    return statuses;
  };
}

/** Replaces gateways one by one, the second of two workers, while requests are sent. @returns their statuses. */
async function restartWith(delay: string): Promise<readonly number[]> {
  const settings = {
    DATABASE_URL: database.pool.options.connectionString ?? '',
    SHUTDOWN_DELAY: delay,
    RATE_LIMIT: '0',
  };
  const service = await openService();
  const followed: Promise<void>[] = [];
  async function start(workers: string): Promise<ServedGateway> {
    const gateway = await serve({ ...settings, WORKERS: workers });
    followed.push(service.follow(gateway.url));
    return gateway;
  }
  const running = [await start('1'), await start('2')];
  const end = request(service.url);
  for (const { child, exit } of running) {
    await start('1');
    child.kill('SIGTERM');
    expect(await exit).toMatchObject({ code: 0 });
  }
  await sleep(500);
  const statuses = await end();
  await endProcesses();
  await Promise.all(followed);
  return statuses;
}

it('loses no request if gateways go on serving for longer than the service takes to notice', async () => {
  const statuses = await restartWith('6');
  expect(statuses.length).toBeGreaterThan(200);
  expect(statuses.filter((status) => status !== 200)).toEqual([]);
});

it('loses requests if gateways stop at once', async () => {
  expect(await restartWith('0')).toContain(0);
});
