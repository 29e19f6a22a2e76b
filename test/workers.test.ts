import { rm } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Account, createAccount } from './accounts.ts';
import { copyTemplate, needsEngine, openTestDatabase, type TestDatabase } from './gateway.ts';
import { endProcesses, runCli, type ServedGateway, serve } from './processes.ts';

// Starting processes takes its time on a busy machine.
vi.setConfig({ testTimeout: 60_000 });
const patience = { timeout: 30_000, interval: 50 };

let database: TestDatabase;
let alice: Account;

beforeAll(async () => {
  database = await openTestDatabase();
  alice = await createAccount(database.client, 'alice');
});
afterEach(endProcesses);
afterAll(() => database?.close());

/** On a connection of its own, since it is connections that are handed to the workers. */
async function ask({ url }: ServedGateway, path: string, init: RequestInit = {}) {
  const headers = { Authorization: `Bearer ${alice.token}`, Connection: 'close', ...init.headers };
  const response = await fetch(`${url}/api/v1${path}`, { ...init, headers });
  return { status: response.status, body: await response.json() };
}

const linesOf = ({ output }: ServedGateway) =>
  output.stderr
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));

/** The processes that have answered, as the log has them. */
const answering = (gateway: ServedGateway) =>
  new Set<number>(linesOf(gateway).flatMap(({ msg, pid }) => (msg === 'answered' ? [pid] : [])));

async function askUntilAnsweredBy(gateway: ServedGateway, count: number): Promise<number[]> {
  return vi.waitFor(async () => {
    expect((await ask(gateway, '/users/me')).status).toBe(200);
    const pids = [...answering(gateway)];
    expect(pids).toHaveLength(count);
    return pids;
  }, patience);
}

describe('several workers', () => {
  needsEngine('postgres', 'the embedded database belongs to one process');

  it('share the port, tell each other of changes, count together, outlive one of them, and stop together', async () => {
    const gateway = await serve(
      {
        DATABASE_URL: database.pool.options.connectionString ?? '',
        LOG_LEVEL: 'info',
        METRICS_PORT: '0',
      },
      '--workers',
      '2',
    );
    expect(gateway.output.stdout).toContain('  Workers   2\n');
    const [first] = await askUntilAnsweredBy(gateway, 2);
    if (first === undefined) throw new Error('nobody answered');

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
        expect(body.data.id).toBe(template);
      }
    }, patience);

    const metricsUrl = /Metrics {3}(\S+)/.exec(gateway.output.stdout)?.[1] ?? '';
    const counted = async () => {
      const text = await (await fetch(metricsUrl)).text();
      const lines = text.match(/^dovetail_requests_total{.*"GET \/users\/me".* \d+$/gm) ?? [];
      return lines.map((line) => Number(line.split(' ').at(-1)));
    };
    const asked = linesOf(gateway).filter(({ operation }) => operation === 'GET /users/me').length;
    await vi.waitFor(async () => expect(await counted()).toEqual([asked]), patience);

    process.kill(first, 'SIGKILL');
    await vi.waitFor(
      () =>
        expect(linesOf(gateway)).toContainEqual(
          expect.objectContaining({
            level: 50,
            worker: first,
            signal: 'SIGKILL',
            msg: expect.stringMatching(/replaced/),
          }),
        ),
      patience,
    );
    // The one that is left answers, and then the one in place of the dead.
    await askUntilAnsweredBy(gateway, 3);

    await vi.waitFor(async () => expect(await counted()).toHaveLength(1), patience);

    gateway.child.kill('SIGTERM');
    expect(await gateway.exit).toMatchObject({ code: 0 });
    for (const pid of answering(gateway)) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
  });

  it('are not started when the first cannot serve, which says why once', async () => {
    const url = 'postgresql://me:secret@127.0.0.1:1/app';
    const { code, stdout, stderr } = await runCli(['serve'], { DATABASE_URL: url, WORKERS: '3', PORT: '0' });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr.match(/DATABASE_URL/g)).toHaveLength(1);
  });
});

describe('the embedded database', () => {
  needsEngine('embedded', 'it is the embedded engine that stays at one');

  it.each<[string, string, string[]]>([
    ['WORKERS=2', '2', []],
    ['WORKERS=auto', 'auto', []],
    ['--workers 2, which goes before WORKERS', '1', ['--workers', '2']],
  ])('stays at one process with %s, and says why', async (_, WORKERS, args) => {
    const folder = await copyTemplate();
    const gateway = await serve({ DATA_DIR: folder, WORKERS }, ...args);
    expect(gateway.output.stdout).toContain('  Workers   1: the embedded database belongs to one process.');
    expect(await fetch(`${gateway.url}/readyz`)).toMatchObject({ status: 200 });
    gateway.child.kill('SIGTERM');
    expect(await gateway.exit).toMatchObject({ code: 0 });
    await rm(folder, { recursive: true, force: true });
  });
});
