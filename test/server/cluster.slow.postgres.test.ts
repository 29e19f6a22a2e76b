import cluster, { type Worker } from 'node:cluster';
import { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { startWorkers } from '../../src/server/cluster.ts';
import { createLogger } from '../../src/telemetry/log.ts';
import { rest } from '../support/gateway.ts';
import { endProcesses, type ServedGateway, serve } from '../support/processes.ts';
import { databaseWith, holdTransaction } from '../support/setUp.ts';

const timeouts = { timeout: 30_000, interval: 50 };

const { database, alice } = await databaseWith('alice');
afterEach(endProcesses);

/** Sends a request on a connection of its own, since connections are distributed among the workers. */
const ask = (gateway: ServedGateway, path: string, init: RequestInit = {}) =>
  rest(gateway, alice.token, path, { ...init, headers: { Connection: 'close', ...init.headers } });

const linesOf = ({ output }: ServedGateway) =>
  output.stderr
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));

/** The processes that have responded, by the log. */
const responding = (gateway: ServedGateway) =>
  new Set<number>(linesOf(gateway).flatMap(({ msg, pid }) => (msg === 'responded' ? [pid] : [])));

async function askUntilServedBy(gateway: ServedGateway, count: number): Promise<number[]> {
  return vi.waitFor(async () => {
    expect((await ask(gateway, '/users/me')).status).toBe(200);
    const pids = [...responding(gateway)];
    expect(pids).toHaveLength(count);
    return pids;
  }, timeouts);
}

const waiting = `SELECT FROM pg_locks WHERE NOT granted AND relation = '"DttSession"'::regclass`;
const DATABASE_URL = database.pool.options.connectionString ?? '';

it('several workers share the port, announce changes to each other, have common metrics, replace one that dies, and stop together once their requests have responses', async () => {
  const settings = { DATABASE_URL, LOG_LEVEL: 'info', METRICS_PORT: '0' };
  const gateway = await serve(settings, '--workers', '2');
  expect(gateway.output.stdout).toContain('  Workers         2\n');
  const [first] = await askUntilServedBy(gateway, 2);
  if (first === undefined) throw new Error('no worker responded');

  const [template] = alice.dttTemplates;
  const activation = await ask(gateway, `/dtt/templates/${template}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: '{"isActive":true}',
  });
  expect(activation.status).toBe(200);
  await vi.waitFor(async () => {
    for (let asked = 0; asked < 6; asked++) {
      const { body } = await ask(gateway, '/dtt/templates/active');
      expect(body.data).toMatchObject({ id: template });
    }
  }, timeouts);

  const metricsUrl = /Metrics +(\S+)/.exec(gateway.output.stdout)?.[1] ?? '';
  const counted = async () => {
    const text = await (await fetch(metricsUrl)).text();
    const lines = text.match(/^dovetail_requests_total{.*"GET \/users\/me".* \d+$/gm) ?? [];
    return lines.map((line) => Number(line.split(' ').at(-1)));
  };
  // The log may be delayed by a tenth of a second.
  const logged = () => linesOf(gateway).filter(({ operation }) => operation === 'GET /users/me').length;
  await vi.waitFor(async () => expect(await counted()).toEqual([logged()]), timeouts);

  process.kill(first, 'SIGKILL');
  const died = { level: 50, worker: first, signal: 'SIGKILL', msg: expect.stringMatching(/replaced/) };
  await expect.poll(() => linesOf(gateway), timeouts).toContainEqual(expect.objectContaining(died));
  // The remaining worker responds, and then the one that replaces the dead one.
  await askUntilServedBy(gateway, 3);

  await vi.waitFor(async () => expect(await counted()).toHaveLength(1), timeouts);

  // All processes get the signal, as from a terminal, and finish the requests in flight.
  const release = await holdTransaction(database.pool, 'LOCK TABLE "DttSession"');
  const asked = Array.from({ length: 4 }, () => ask(gateway, '/dtt/sessions'));
  const count = async () => (await database.pool.query(waiting)).rowCount;
  await expect.poll(count, timeouts).toBeGreaterThan(0);
  const workers = [...responding(gateway)].filter((pid) => pid !== first);
  for (const pid of [...workers, gateway.child.pid ?? 0]) process.kill(pid, 'SIGTERM');
  await sleep(200);
  await release();
  for (const { status } of await Promise.all(asked)) expect(status).toBe(200);
  expect(await gateway.exit).toMatchObject({ code: 0 });
  expect(linesOf(gateway).filter(({ msg }) => msg === 'closed')).toHaveLength(2);
  for (const pid of responding(gateway)) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
});

it('several workers take requests for SHUTDOWN_DELAY after a signal, while the probe of readiness fails', async () => {
  const gateway = await serve({ DATABASE_URL, SHUTDOWN_DELAY: '3', WORKERS: '2' });
  const probe = async () =>
    (await fetch(`${gateway.url}/readyz`, { headers: { Connection: 'close' } })).status;
  expect(await probe()).toBe(200);
  const began = performance.now();
  gateway.child.kill('SIGTERM');
  await expect.poll(probe, timeouts).toBe(503);
  for (let asked = 0; asked < 6; asked++) expect((await ask(gateway, '/users/me')).status).toBe(200);
  expect(await gateway.exit).toMatchObject({ code: 0 });
  expect(performance.now() - began).toBeGreaterThan(2_900);
});

describe('startWorkers', () => {
  /** Fake workers that the test starts and ends. */
  function open() {
    const workers: FakeWorker[] = [];
    vi.spyOn(cluster, 'fork').mockImplementation(() => {
      const worker = new FakeWorker(1_000 + workers.length);
      workers.push(worker);
      // The parts of a worker that are used.
      return worker as unknown as Worker;
    });
    const log: string[] = [];
    const logger = createLogger('info', { write: (line: string) => log.push(line) });
    return { workers, logger, log: () => log.map((line) => JSON.parse(line)) };
  }
  class FakeWorker extends EventEmitter {
    readonly process;
    constructor(pid: number) {
      super();
      this.process = { pid, kill: vi.fn() };
    }
    /** Reports that it serves, and waits until that is received. */
    async serve() {
      this.emit('message', { url: `http://127.0.0.1:${this.process.pid}` });
      await turn();
    }
  }
  const turn = () => new Promise((settle) => setImmediate(settle));

  async function openServing() {
    const opened = open();
    const starting = startWorkers(2, opened.logger);
    for (let index = 0; index < 2; index++) await opened.workers[index]?.serve();
    const serving = await starting;
    if (!serving) throw new Error('the workers do not serve');
    return { ...opened, serving };
  }

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  });

  it.each<[string, number, boolean]>([
    ['it is told to before any of them serves', 0, true],
    ['it is told to after one of them serves', 1, true],
    ['one ends before it serves', 1, false],
  ])('stops all workers, and waits for their end, if %s', async (_, served, isTold) => {
    const { workers, logger, log } = open();
    const stopping = new AbortController();
    const settled = vi.fn();
    const starting = startWorkers(3, logger, stopping.signal).then(settled);
    if (served) await workers[0]?.serve();
    if (isTold) stopping.abort();
    else workers.at(-1)?.emit('exit', 1, null);
    await turn();
    const killed = workers.map(({ process: { kill } }) => kill.mock.calls.flat());
    expect(killed).toEqual(isTold ? Array(served + 1).fill(['SIGTERM']) : [['SIGTERM'], []]);
    if (served && isTold) workers.at(-1)?.emit('exit', null, 'SIGTERM');
    await turn();
    expect(settled).not.toHaveBeenCalled();
    workers[0]?.emit('exit', 0, null);
    await starting;
    expect(settled).toHaveBeenCalledWith(undefined);
    expect(workers).toHaveLength(served + 1);
    // A worker that ends has logged the reason itself.
    expect(log()).toEqual([]);
  });

  it('replaces a worker that dies while the others start, once they serve', async () => {
    const { workers, logger } = open();
    const starting = startWorkers(2, logger);
    await workers[0]?.serve();
    workers[0]?.emit('exit', null, 'SIGKILL');
    await workers[1]?.serve();
    await starting;
    expect(workers).toHaveLength(3);
  });

  it('replaces a worker that did not run for a second only after a second, each time, and none after a stop', async () => {
    const { workers, serving } = await openServing();
    for (let count = 2; count < 6; count++) {
      vi.advanceTimersByTime(999);
      workers[count === 2 ? 0 : count - 1]?.emit('exit', 1, null);
      vi.advanceTimersByTime(999);
      expect(workers).toHaveLength(count);
      vi.advanceTimersByTime(1);
      expect(workers).toHaveLength(count + 1);
    }
    workers[5]?.emit('exit', 1, null);
    void serving.close();
    vi.advanceTimersByTime(1_000);
    expect(workers).toHaveLength(6);
  });
});
