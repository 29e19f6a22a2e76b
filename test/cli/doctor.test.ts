import { once } from 'node:events';
import { chmod, mkdtemp, readdir, rm, truncate } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { checkNode, examine, type Finding } from '../../src/doctor.ts';
import { type Gateway, openGateway } from '../../src/gateway.ts';
import { copyTemplate } from '../gateway.ts';
import { runCli } from '../processes.ts';

// Starting processes takes its time on a busy machine.
vi.setConfig({ testTimeout: 60_000 });

const problemsOf = (findings: readonly Finding[]) => findings.filter(({ state }) => state === 'problem');
const found = (findings: readonly Finding[], check: string) => findings.find((each) => each.check === check);
const portOf = (server: Server) => (server.address() as AddressInfo).port;

let empty: string;
beforeAll(async () => {
  empty = await mkdtemp(join(tmpdir(), 'dovetail-doctor-'));
});
afterAll(() => rm(empty, { recursive: true, force: true }));

describe('dovetail doctor', () => {
  it('finds nothing to complain about before the first start, and leaves nothing behind', async () => {
    const settings = { DATA_DIR: join(empty, 'data'), PORT: '0' };
    const { code, stdout, stderr } = await runCli(['doctor'], settings);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^✔ node .*\n✔ settings .*\n✔ database +embedded, none yet/);
    expect(stdout).not.toContain('\u001b');
    expect(await readdir(empty)).toEqual([]);
  });

  it('exits 1 and names every wrong setting, with what to do', async () => {
    const { code, stdout } = await runCli(['doctor', '--json'], { PORT: 'http', LOG_LEVEL: 'loud' });
    expect(code).toBe(1);
    const { ok, findings } = JSON.parse(stdout);
    expect(ok).toBe(false);
    expect(problemsOf(findings)).toEqual([
      {
        check: 'settings',
        state: 'problem',
        says: 'PORT is "http", but takes an integer from 0 to 65535.',
        advice: expect.any(String),
      },
      expect.objectContaining({ says: expect.stringMatching(/^LOG_LEVEL is "loud"/) }),
    ]);
  });

  it('names settings that contradict each other', async () => {
    const { code, stdout } = await runCli(['doctor', '--json'], { PERSISTED_OPERATIONS: 'only', PORT: '0' });
    expect(code).toBe(1);
    expect(problemsOf(JSON.parse(stdout).findings)).toEqual([
      expect.objectContaining({
        check: 'settings',
        says: 'PERSISTED_OPERATIONS=only needs PERSISTED_OPERATIONS_FILE, which names them.',
      }),
    ]);
  });

  it.each([
    ['18.20.0', 'problem'],
    ['20.18.3', 'problem'],
    ['20.19.0', 'ok'],
    ['24.0.0', 'ok'],
  ])('says of Node %s: %s', (version, state) => {
    expect(checkNode(version).state).toBe(state);
  });

  it.each([
    [
      'a database out of reach',
      { DATABASE_URL: 'postgresql://me:secret@127.0.0.1:1/app' },
      'database',
      /^postgresql:\/\/me:\*\*\*@127\.0\.0\.1:1\/app: connect ECONNREFUSED/,
    ],
    ['a DATA_DIR that is no folder', { DATA_DIR: '/dev/null' }, 'database', /^DATA_DIR \/dev\/null: /],
    ['an address of another machine', { HOST: '192.0.2.1', PORT: '4000' }, 'port', /EADDRNOTAVAIL/],
    [
      'an upstream out of reach',
      { UPSTREAM_URL: 'http://127.0.0.1:1/api/v1', UPSTREAM_TOKEN: 'secret' },
      'upstream',
      /^GET \/users\/me: /,
    ],
    ['an upstream without a token', { UPSTREAM_URL: 'http://127.0.0.1:1' }, 'upstream', /UPSTREAM_TOKEN/],
  ])('finds %s', async (_, settings, check, says) => {
    const problems = problemsOf(await examine({ DATA_DIR: empty, PORT: '0', ...settings }));
    expect(problems).toEqual([
      { check, state: 'problem', says: expect.stringMatching(says), advice: expect.any(String) },
    ]);
    expect(JSON.stringify(problems)).not.toContain('secret');
  });

  it.each([
    [
      'damaged',
      (dir: string) => truncate(join(dir, 'postgres/global/pg_control'), 100),
      /is damaged: move it away/,
    ],
    [
      'open to others',
      (dir: string) => chmod(join(dir, 'postgres'), 0o777),
      /^other users may read or write .*postgres$/,
    ],
    [
      'in a folder that others may write to',
      (dir: string) => chmod(dir, 0o777),
      /^other users may put other files/,
    ],
  ])('finds a database that is %s, and leaves it as it is', async (_, spoil, says) => {
    const folder = await copyTemplate();
    await chmod(join(folder, 'postgres'), 0o700);
    expect(problemsOf(await examine({ DATA_DIR: folder, PORT: '0' }))).toEqual([]);
    await spoil(folder);
    const before = await readdir(folder, { recursive: true });
    const problems = problemsOf(await examine({ DATA_DIR: folder, PORT: '0' }));
    expect(problems).toEqual([
      expect.objectContaining({ says: expect.stringMatching(says), advice: expect.any(String) }),
    ]);
    expect(await readdir(folder, { recursive: true })).toEqual(before);
    await rm(folder, { recursive: true });
  });

  it('finds a port that another program has', async () => {
    const other = createServer((socket) => socket.end('220 ready\r\n')).listen(0, '127.0.0.1');
    await once(other, 'listening');
    const port = portOf(other);
    const problems = problemsOf(await examine({ DATA_DIR: empty, PORT: String(port) }));
    expect(problems.map(({ says }) => says)).toEqual([`${port} is taken by another program`]);
    other.close();
  });

  describe('beside a running gateway', () => {
    let folder: string;
    let gateway: Gateway;
    beforeAll(async () => {
      folder = await copyTemplate();
      const settings = { DATA_DIR: folder, PORT: '0', METRICS_PORT: '0', LOG_LEVEL: 'silent' };
      gateway = await openGateway(readConfig(settings));
    });
    afterAll(async () => {
      await gateway?.close();
      await rm(folder, { recursive: true, force: true });
    });

    it('asks its database, and knows its ports', async () => {
      const findings = await examine({
        DATA_DIR: folder,
        PORT: new URL(gateway.url).port,
        METRICS_PORT: new URL(gateway.metricsUrl ?? '').port,
      });
      expect(problemsOf(findings)).toEqual([]);
      expect(found(findings, 'database')?.says).toMatch(/^PostgreSQL \d+.*open in a running gateway$/);
      expect(found(findings, 'migrations')?.says).toMatch(/^all \d+ applied$/);
      expect(found(findings, 'port')?.says).toMatch(/^a running gateway has \d+$/);
      expect(found(findings, 'metrics port')?.says).toMatch(/^a running gateway has \d+$/);
    });
  });
});
