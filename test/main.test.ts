import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, rm, stat } from 'node:fs/promises';
import { type ClientRequest, createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it, vi } from 'vitest';
import { type PostgresServer, startPostgres } from './postgres.ts';
import { endProcesses, runCli, type ServedGateway, serve } from './processes.ts';

// Starting processes takes its time on a busy machine.
vi.setConfig({ testTimeout: 90_000 });

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dovetail-main-'));
});
afterEach(async () => {
  await endProcesses();
  await rm(folder, { recursive: true, force: true });
});

/** Starts over a database that has its tables already, which is much faster than to create one. */
async function servePrepared(): Promise<ServedGateway> {
  const engine = inject('engine');
  if (engine.kind === 'embedded') await cp(engine.template, folder, { recursive: true });
  return serve({ DATA_DIR: folder });
}

async function shell(command: string): Promise<{ code: number | null; stdout: string }> {
  const child = spawn('sh', ['-c', command], { stdio: ['ignore', 'pipe', 'ignore'] });
  let stdout = '';
  child.stdout.on('data', (data) => {
    stdout += data;
  });
  const [code] = await once(child, 'close');
  return { code, stdout };
}

async function stop({ child, exit }: ServedGateway, signal: NodeJS.Signals = 'SIGTERM') {
  child.kill(signal);
  return exit;
}

describe('an empty DATA_DIR', () => {
  it('becomes a database with a demo account, found again by the next start', async () => {
    const dataDir = join(folder, 'data');
    const first = await serve({ DATA_DIR: dataDir });
    expect(first.output.stdout).toContain(`GraphiQL  ${first.url}/graphql\n`);
    expect(first.output.stdout).toContain(`REST      ${first.url}/api/v1\n`);
    expect(first.output.stdout).toContain(`Token     ${first.token}  (of the demo account)\n`);

    const commands = first.output.stdout.match(/^ {2}curl .*$/gm) ?? [];
    const answers = await Promise.all(commands.map((command) => shell(command.replace('curl', 'curl -sS'))));
    expect(answers.map(({ code, stdout }) => [code, JSON.parse(stdout)])).toEqual([
      [0, { data: { viewer: { username: 'demo' } } }],
      [0, { ok: true, data: expect.objectContaining({ name: 'Beginner Program' }) }],
    ]);
    expect((await stat(join(dataDir, 'demo-token'))).mode & 0o777).toBe(0o600);
    expect(await stop(first)).toMatchObject({ code: 0, stderr: '' });

    const second = await serve({ DATA_DIR: dataDir });
    expect(second.token).toBe(first.token);
    const response = await fetch(`${second.url}/api/v1/dtt/sessions`, {
      headers: { Authorization: `Bearer ${second.token}` },
    });
    expect(await response.json()).toMatchObject({ ok: true, data: { data: expect.any(Array) } });
    expect(await stop(second, 'SIGINT')).toMatchObject({ code: 0, stderr: '' });
  });
});

/** Sends half of the body of an activation, so that the request is in flight until the rest is sent. */
async function beginActivation({ url, token }: ServedGateway): Promise<ClientRequest> {
  const half = request(`${url}/api/v1/dtt/templates/1`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', 'Content-Length': 17 },
  });
  half.write('{"isActive"');
  // Another request's answer shows that the server has read what was sent before it.
  await once(half, 'socket');
  await fetch(`${url}/healthz`);
  return half;
}

async function bodyOf(response: IncomingMessage): Promise<string> {
  return Buffer.concat(await response.toArray()).toString();
}

describe('a running gateway', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)(
    'finishes the request in flight on %s, and exits 0',
    async (signal) => {
      const gateway = await servePrepared();
      const inFlight = await beginActivation(gateway);
      const answered = once(inFlight, 'response');
      gateway.child.kill(signal);
      // It does not take new ones.
      await expect
        .poll(() =>
          fetch(`${gateway.url}/healthz`).then(
            () => 'taken',
            () => 'refused',
          ),
        )
        .toBe('refused');
      expect(gateway.child.exitCode).toBeNull();
      inFlight.end(':true}');
      const [response] = await answered;
      expect(response.statusCode).toBe(200);
      expect(JSON.parse(await bodyOf(response))).toMatchObject({ ok: true, data: { id: 1, isActive: true } });
      const started = performance.now();
      expect(await gateway.exit).toMatchObject({ code: 0, stderr: '' });
      // It does not sit out the keep-alive of the connection.
      expect(performance.now() - started).toBeLessThan(3_500);
    },
  );

  it('is alive and ready, and refuses to share its folder', async () => {
    const gateway = await servePrepared();
    const statuses = ['/healthz', '/readyz'].map(async (path) => (await fetch(gateway.url + path)).status);
    expect(await Promise.all(statuses)).toEqual([200, 200]);
    expect(await runCli(['serve'], { DATA_DIR: folder, PORT: '0' })).toEqual({
      code: 1,
      stdout: '',
      stderr: `DATA_DIR ${JSON.stringify(folder)} is in use by process ${gateway.child.pid}. Stop it, or set DATA_DIR to another folder.\n`,
    });
    expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200);
  });
});

describe('a start that cannot be', () => {
  it.each([
    [{ PORT: 'http' }, 'PORT is "http", but takes an integer from 0 to 65535.'],
    [{ LOG_LEVEL: 'loud' }, /^LOG_LEVEL is "loud", but takes one of fatal, .*silent\.$/],
    [
      { DATABASE_URL: 'mysql://me:secret@localhost/app' },
      'DATABASE_URL is "mysql://me:***@localhost/app", but takes a URL such as postgresql://user:password@host:5432/database.',
    ],
    [
      { DATABASE_URL: 'postgresql://me:secret@127.0.0.1:1/app' },
      'DATABASE_URL is "postgresql://me:***@127.0.0.1:1/app", but cannot be reached: connect ECONNREFUSED 127.0.0.1:1',
    ],
    [
      { DATABASE_URL: 'postgresql://me:sec%ret@127.0.0.1:1/app' },
      /^DATABASE_URL is "postgresql:\/\/me:\*\*\*@127.0.0.1:1\/app", but cannot be reached: (?!.*sec%ret).*$/,
    ],
    [{ DATA_DIR: '/dev/null' }, /^DATA_DIR is "\/dev\/null", but takes a folder that can be written to: .*$/],
  ])('for %o exits 1 with one line', async (settings, line) => {
    const { code, stdout, stderr } = await runCli(['serve'], { DATA_DIR: folder, PORT: '0', ...settings });
    expect(stderr.trimEnd()).toMatch(line);
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  });

  it('for a port in use exits 1 with one line', async () => {
    const engine = inject('engine');
    if (engine.kind === 'embedded') await cp(engine.template, folder, { recursive: true });
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const exit = await runCli(['serve'], { DATA_DIR: folder, PORT: String(port) });
    expect(exit).toEqual({
      code: 1,
      stdout: '',
      stderr: `HOST 127.0.0.1 and PORT ${port} cannot be listened on: listen EADDRINUSE: address already in use 127.0.0.1:${port}\n`,
    });
    other.close();
  });
});

describe('DATABASE_URL', () => {
  let postgres: PostgresServer;
  beforeAll(async () => {
    postgres = await startPostgres();
    await postgres.createDatabase('app');
  });
  afterAll(() => postgres?.stop());

  async function query(sql: string) {
    const client = new pg.Client(`${postgres.url}/app`);
    await client.connect();
    const { rows } = await client.query(sql);
    await client.end();
    return rows;
  }

  it('names a PostgreSQL that gets the migrations, and no demo account', async () => {
    const gateway = await serve({ DATABASE_URL: `${postgres.url}/app`, DATA_DIR: folder });
    expect(gateway.output.stdout).toContain('Bearer YOUR_API_TOKEN');
    expect(gateway.output.stdout).not.toContain('demo');
    expect(await query('SELECT count(*)::int FROM "User"')).toEqual([{ count: 0 }]);
    expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200);
    expect(await stop(gateway)).toMatchObject({ code: 0, stderr: '' });
  });

  it('that names no database of the server says so, without the password', async () => {
    const { code, stderr } = await runCli(['serve'], { DATABASE_URL: `${postgres.url}/missing`, PORT: '0' });
    expect(stderr).toMatch(
      /^DATABASE_URL is .*, but cannot be reached: database "missing" does not exist\n$/,
    );
    expect(stderr).not.toContain('postgres:postgres');
    expect(code).toBe(1);
  });

  it.each(['1', '2'])('is let go of when the port is taken, with WORKERS=%s', async (WORKERS) => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const settings = { DATABASE_URL: `${postgres.url}/app`, PORT: String(port), WORKERS };
    const { code, stderr } = await runCli(['serve'], settings);
    expect(stderr).toMatch(/^HOST 127\.0\.0\.1 and PORT \d+ cannot be listened on: .*EADDRINUSE.*\n$/);
    expect(code).toBe(1);
    taken.close();
  });

  it('is not ready while the database is gone, and ready again afterwards', async () => {
    const gateway = await serve({
      DATABASE_URL: `${postgres.url}/app`,
      DATA_DIR: folder,
      LOG_LEVEL: 'silent',
    });
    const readiness = async () => (await fetch(`${gateway.url}/readyz`)).status;
    const administer = async (sql: string) => {
      const client = new pg.Client(`${postgres.url}/postgres`);
      await client.connect();
      await client.query(sql);
      await client.end();
    };
    expect(await readiness()).toBe(200);
    await administer('ALTER DATABASE app ALLOW_CONNECTIONS false');
    await administer("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'app'");
    await expect.poll(readiness).toBe(503);
    expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
    await administer('ALTER DATABASE app ALLOW_CONNECTIONS true');
    await expect.poll(readiness).toBe(200);
    expect(await stop(gateway)).toMatchObject({ code: 0 });
  });
});
