import { exec } from 'node:child_process';
import { once } from 'node:events';
import { stat, writeFile } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { migrationLock } from '../../src/database/migrate.ts';
import { release } from '../../src/version.ts';
import { needsEngine, newServerDatabase, rest } from '../support/gateway.ts';
import { listen } from '../support/listen.ts';
import { newFolder } from '../support/newFolder.ts';
import { queryOnce } from '../support/postgres.ts';
import { endProcesses, runCli, type ServedGateway, serve, startCli } from '../support/processes.ts';

/** Has a process cause an unhandled rejection when it gets SIGUSR2. */
const stray = `--import=data:text/javascript,process.once('SIGUSR2',()=>Promise.reject(Error('stray')))`;

const taken = createServer();
const { port: takenPort } = new URL(await listen(taken));
afterAll(() => void taken.close());

let folder: string;
beforeEach(() => {
  folder = newFolder();
});
afterEach(endProcesses);

async function stop({ child, exit }: ServedGateway, signal: NodeJS.Signals = 'SIGTERM') {
  child.kill(signal);
  return exit;
}

/**
 * Stops the gateway while an activation is half sent, and checks that it gets its response. Tells it twice, as npm and a terminal do.
 * Returns what the gateway wrote.
 */
async function stopInFlight(gateway: ServedGateway) {
  const { url, token } = gateway;
  const headers = {
    Authorization: `Bearer ${token}`,
    'Content-Type': 'application/json',
    'Content-Length': 17,
  };
  const inFlight = request(`${url}/api/v1/dtt/templates/1`, { method: 'POST', headers });
  inFlight.write('{"isActive"');
  // The response to another request shows that the server has read what was sent before it.
  await once(inFlight, 'socket');
  await fetch(`${url}/healthz`);
  const responded = once(inFlight, 'response');
  gateway.child.kill('SIGTERM');
  // No new connections are accepted.
  const isAccepted = () => fetch(`${url}/healthz`).then(Boolean, () => false);
  await expect.poll(isAccepted).toBe(false);
  gateway.child.kill('SIGTERM');
  await sleep(100);
  expect(gateway.child.exitCode).toBeNull();
  inFlight.end(':true}');
  const [response] = await responded;
  const ended = once(response.socket, 'close');
  expect(response.statusCode).toBe(200);
  expect(JSON.parse((await response.toArray()).join(''))).toMatchObject({
    ok: true,
    data: { id: 1, isActive: true },
  });
  const started = performance.now();
  await ended;
  // The keep-alive timeout of the connection is not waited for.
  expect(performance.now() - started).toBeLessThan(3_500);
  const exit = await gateway.exit;
  // Nor is the timeout of requests.
  expect(performance.now() - started).toBeLessThan(8_000);
  return exit;
}

describe('a gateway with the embedded database', () => {
  needsEngine('embedded', 'with DATABASE_URL there is no demo account, and no folder');

  it('creates a database with a demo account in an empty DATA_DIR, prints commands to try it, opens it again, and ends once all requests have their responses', async () => {
    const dataDir = join(folder, 'data');
    const first = await serve({ DATA_DIR: dataDir });
    const { url, token } = first;
    const commands = first.output.stdout.match(/^ {2}curl .*$/gm) ?? [];
    expect(first.output.stdout).toBe(`
Dovetail is running.

  Start here      ${url}
  Console         ${url}/console
  GraphiQL        ${url}/graphql
  REST reference  ${url}/docs
  Database        ${dataDir} (embedded)
  Token           ${token}  (of the demo account)

${commands.join('\n')}

`);
    const responses = await Promise.all(
      commands.map((command) => promisify(exec)(command.replace('curl', 'curl -sS'))),
    );
    expect(responses.map(({ stdout }) => JSON.parse(stdout))).toEqual([
      { data: { viewer: { username: 'demo' } } },
      { ok: true, data: expect.objectContaining({ name: 'Beginner Program' }) },
    ]);
    expect((await stat(join(dataDir, 'demo-token'))).mode & 0o777).toBe(0o600);
    expect(await stop(first, 'SIGINT')).toMatchObject({ code: 0, stderr: '' });

    const second = await serve({
      DATA_DIR: dataDir,
      LOG_LEVEL: 'info',
      WORKERS: 'auto',
      METRICS_PORT: '0',
      NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} ${stray}`,
    });
    expect(second.token).toBe(token);
    // Neither SIGHUP nor an unhandled rejection ends the process, and SIGUSR1 does not open Node's inspector, which would say so.
    for (const signal of ['SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const) second.child.kill(signal);
    const unhandled = 'a promise was rejected that nobody waited for';
    await expect.poll(() => second.output.stderr).toContain(unhandled);
    const [, metricsUrl = ''] = /^ {2}Metrics +(\S+)$/m.exec(second.output.stdout) ?? [];
    for (const url of [`${second.url}/healthz`, `${second.url}/readyz`, metricsUrl])
      expect([url, (await fetch(url)).status]).toEqual([url, 200]);
    const { body } = await rest(second, second.token, '/dtt/sessions');
    expect(body).toMatchObject({ ok: true, data: { data: expect.any(Array) } });
    const { code, stdout, stderr } = await stopInFlight(second);
    expect(code).toBe(0);
    expect(stdout).toContain('  Workers         1: the embedded database belongs to one process.');
    const log = stderr
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
      .filter(({ msg }) => msg !== 'responded');
    expect(log).toMatchObject([
      { level: 30, msg: 'serving', url: second.url, release, database: 'embedded' },
      { level: 50, msg: unhandled, err: { message: 'stray' } },
      { level: 30, msg: 'closing' },
      { level: 30, msg: 'closed' },
    ]);
  });

  it('creates no database if its PORT is taken', async () => {
    const DATA_DIR = join(folder, 'data');
    expect(await runCli(['serve'], { DATA_DIR, PORT: takenPort })).toMatchObject({ code: 1 });
    await expect(stat(DATA_DIR)).rejects.toThrow('ENOENT');
  });

  it('is asked by a health check where it listens, whatever HOST and PORT are, and serves where it cannot write that', async () => {
    const settings = {
      DATA_DIR: join(folder, 'data'),
      HOST: '::1',
      PORT: '1',
      WRITE_URL_TO: join(folder, 'url'),
    };
    const check = (env = {}) => runCli(['healthcheck'], { ...settings, ...env });
    const gateway = await serve(settings, '--host', '127.0.0.1', '--port', '0');
    expect(await check()).toMatchObject({ code: 0, stdout: 'ready\n' });
    const { hostname: HOST, port: PORT } = new URL(gateway.url);
    expect(await check({ HOST, PORT, WRITE_URL_TO: join(folder, 'none') })).toMatchObject({ code: 0 });
    await writeFile(join(folder, 'wrong'), `${gateway.url}/wrong`);
    expect(await check({ WRITE_URL_TO: join(folder, 'wrong') })).toMatchObject({ code: 1 });
    await stop(gateway);
    expect(await check()).toMatchObject({ code: 1, stderr: `Nothing responds at ${gateway.url}.\n` });
    const unsaid = await serve({ ...settings, WRITE_URL_TO: folder, HOST: '127.0.0.1' }, '--port', '0');
    expect(unsaid.output.stderr).toMatch(/^WRITE_URL_TO cannot be written: EISDIR/);
  });
});

describe('DATABASE_URL', () => {
  needsEngine('postgres', 'it needs a server');

  it('of a PostgreSQL has the gateway apply the migrations, and make no demo account', async () => {
    const DATABASE_URL = await newServerDatabase();
    const gateway = await serve({ DATABASE_URL, DATA_DIR: folder, LOG_LEVEL: 'silent' });
    const place = `DATABASE_URL='${DATABASE_URL.replace(':postgres@', ':***@')}'`;
    expect(gateway.output.stdout).toContain(`
    the demo account, which needs an empty database
      ${place} npx dovetail-gateway demo
`);
    expect(gateway.output.stdout).toContain('Bearer YOUR_API_TOKEN');
    expect(gateway.output.stdout).not.toMatch(/Token {2}|Workers|Metrics|:postgres@/);
    expect(await queryOnce(DATABASE_URL, 'SELECT count(*)::int FROM "User"')).toEqual([{ count: 0 }]);
    expect(await stop(gateway)).toMatchObject({ code: 0, stderr: '' });
  });

  it('of a PostgreSQL has the demo account with DEMO_ACCOUNT=public, with a token that stays and that pages may show', async () => {
    const settings = {
      DATABASE_URL: await newServerDatabase(),
      DATA_DIR: join(folder, 'new'),
      DEMO_ACCOUNT: 'public',
      // As in a container.
      HOST: '0.0.0.0',
    };
    const first = await serve(settings);
    expect(first.token).not.toBe('');
    const home = await fetch(first.url, { headers: { Accept: 'text/html' } });
    expect(await home.text()).toContain(first.token);
    await stop(first);
    const second = await serve(settings);
    expect(second.token).toBe(first.token);
    await stop(second);
  });

  it('of a database whose migrations are locked lets a gateway stop that waits to start', async () => {
    const DATABASE_URL = await newServerDatabase();
    const holder = new pg.Client(DATABASE_URL);
    await holder.connect();
    await holder.query('SELECT pg_advisory_lock($1)', [migrationLock]);
    const { child, exit } = startCli(['serve'], { DATABASE_URL, PORT: '0', LOG_LEVEL: 'silent' });
    // Only of this database: others on the server have locks of their own.
    const ungranted =
      "SELECT FROM pg_locks JOIN pg_database ON oid = database WHERE datname = current_database() AND locktype = 'advisory' AND NOT granted";
    const waiting = () => queryOnce(DATABASE_URL, ungranted);
    await expect.poll(waiting, { timeout: 30_000 }).toHaveLength(1);
    child.kill('SIGTERM');
    expect(await exit).toEqual({ code: 0, stdout: '', stderr: 'Stopped before the gateway was ready.\n' });
    await holder.end();
  });

  it('of a server that cannot be reached is reported once for all workers', async () => {
    const settings = { DATABASE_URL: 'postgresql://127.0.0.1:1/app', PORT: '0', WORKERS: '3' };
    const { code, stdout, stderr } = await runCli(['serve'], settings);
    expect(stderr).toMatch(
      /^DATABASE_URL is .*, but cannot be used: .*ECONNREFUSED.*\. Run `.* doctor`, which says what to do\.\n$/,
    );
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  });

  it('of a PostgreSQL is not served by several workers if METRICS_PORT is taken', async () => {
    const settings = { DATABASE_URL: await newServerDatabase(), PORT: '0', METRICS_PORT: takenPort };
    const stderr = expect.stringContaining('METRICS_PORT');
    expect(await runCli(['serve', '--workers', '2'], settings)).toEqual({ code: 1, stdout: '', stderr });
  });
});
