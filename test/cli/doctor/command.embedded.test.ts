/** The findings of the doctor about settings, machine, embedded database and upstream, and how the command prints them. */

import { once } from 'node:events';
import type { StatsFs } from 'node:fs';
import fs, { chmod, mkdtemp, readdir, rm, truncate } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { examine } from '../../../src/cli/doctor/checks.ts';
import type { Finding } from '../../../src/cli/doctor/finding.ts';
import { readConfig } from '../../../src/config/config.ts';
import { type Gateway, openGateway } from '../../../src/server/gateway.ts';
import { freePort } from '../../support/freePort.ts';
import { copyTemplate } from '../../support/gateway.ts';
import { runHere } from '../../support/runHere.ts';

// Opening a database is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 });

const problemsOf = (findings: readonly Finding[]) => findings.filter(({ state }) => state === 'problem');
const found = (findings: readonly Finding[], check: string) => findings.find((each) => each.check === check);
// A server that listens on a port has an address of this type.
const portOf = (server: Server) => (server.address() as AddressInfo).port;

let empty: string;
beforeAll(async () => {
  empty = await mkdtemp(join(tmpdir(), 'dovetail-doctor-'));
});
afterAll(() => rm(empty, { recursive: true, force: true }));

describe('dovetail doctor', () => {
  it('finds no problem before the first start, and creates nothing', async () => {
    const port = String(await freePort());
    const settings = { DATA_DIR: join(empty, 'data'), PORT: port };
    const { code, stdout, stderr } = await runHere(['doctor'], settings);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(
      new RegExp(
        `^✔ node             Node \\d.*
✔ settings         all of them can be used
✔ database         embedded, none yet: it will be in ${join(empty, 'data')}
✔ database access  only its owner can read it
✔ disk             \\d+\\.\\d GiB are free for DATA_DIR
✔ port             ${port} is free
$`,
      ),
    );
    expect(stdout).not.toContain('\u001b');
    expect(await readdir(empty)).toEqual([]);
    // The port is free again as well.
    expect(found(await examine(settings), 'port')?.says).toBe(`${port} is free`);
  });

  it('exits with 1, and names every invalid setting with advice', async () => {
    const wrong = { PORT: 'http', LOG_LEVEL: 'loud' };
    const { code, stdout, stderr } = await runHere(['doctor', '--json'], wrong);
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
    const { ok, findings } = JSON.parse(stdout);
    expect(ok).toBe(false);
    const advice = 'Correct the variable, or unset it for the default.';
    expect(findings).toEqual([
      {
        check: 'settings',
        state: 'problem',
        says: 'PORT is "http", but takes an integer from 0 to 65535.',
        advice,
      },
      {
        check: 'settings',
        state: 'problem',
        says: expect.stringMatching(/^LOG_LEVEL is "loud"/),
        advice,
      },
    ]);
    const asText = await runHere(['doctor'], wrong);
    expect(asText.code).toBe(1);
    expect(asText.stdout.split('\n').slice(0, 2)).toEqual([
      '✖ settings         PORT is "http", but takes an integer from 0 to 65535.',
      `                   → ${advice}`,
    ]);
  });

  it('names settings that contradict each other', async () => {
    const findings = await examine({ PERSISTED_OPERATIONS: 'only', DATA_DIR: empty, PORT: '0' });
    expect(problemsOf(findings)).toEqual([
      {
        check: 'settings',
        state: 'problem',
        says: 'PERSISTED_OPERATIONS=only needs PERSISTED_OPERATIONS_FILE, which names them.',
        advice: 'Correct PERSISTED_OPERATIONS and PERSISTED_OPERATIONS_FILE, or unset them.',
      },
    ]);
    expect(found(findings, 'port')).toEqual({ check: 'port', state: 'ok', says: 'any that is free' });
  });

  it.each([
    [
      'a database out of reach',
      { DATABASE_URL: 'postgresql://me:secret@127.0.0.1:1/app' },
      'database',
      /^postgresql:\/\/me:\*\*\*@127\.0\.0\.1:1\/app: cannot be reached: connect ECONNREFUSED/,
      /^Start the server, or correct DATABASE_URL/,
    ],
    [
      'a DATA_DIR that is not a folder',
      { DATA_DIR: '/dev/null' },
      'database',
      /^DATA_DIR \/dev\/null: /,
      /^Make it a folder of the user who runs Dovetail/,
    ],
    [
      'an address of another machine',
      { HOST: '192.0.2.1', PORT: '4000' },
      'port',
      /^192\.0\.2\.1 4000: .*EADDRNOTAVAIL/,
      /^Choose another PORT, or another HOST\.$/,
    ],
    [
      'an address of another machine, for metrics',
      { HOST: '192.0.2.1', METRICS_PORT: '4001' },
      'metrics port',
      /^192\.0\.2\.1 4001: .*EADDRNOTAVAIL/,
      /^Choose another METRICS_PORT, or another HOST\.$/,
    ],
    [
      'an upstream out of reach',
      { UPSTREAM_URL: 'http://127.0.0.1:1/api/v1', UPSTREAM_TOKEN: 'secret' },
      'upstream',
      /^GET \/users\/me: /,
      /^Correct UPSTREAM_URL and UPSTREAM_TOKEN, or try again later\.$/,
    ],
    [
      'an upstream out of reach whose tokens clients send',
      { UPSTREAM_URL: 'http://127.0.0.1:1/api/v1' },
      'upstream',
      /^GET \/users\/me: /,
      /^Correct UPSTREAM_URL and UPSTREAM_TOKEN, or try again later\.$/,
    ],
  ])('finds a problem with %s', async (_, settings, check, says, advice) => {
    const problems = problemsOf(await examine({ DATA_DIR: empty, PORT: '0', ...settings }));
    expect(problems).toEqual([
      { check, state: 'problem', says: expect.stringMatching(says), advice: expect.stringMatching(advice) },
    ]);
    expect(JSON.stringify(problems)).not.toContain('secret');
  });

  it('finds a damaged database', async () => {
    const folder = await copyTemplate();
    await chmod(join(folder, 'postgres'), 0o700);
    const settings = { DATA_DIR: folder, PORT: '0' };
    const before = await examine(settings);
    expect(problemsOf(before)).toEqual([]);
    expect(found(before, 'database')?.says).toBe(`embedded, in ${folder}, and no gateway has it open`);
    await truncate(join(folder, 'postgres/global/pg_control'), 100);
    expect(problemsOf(await examine(settings))).toEqual([
      {
        check: 'database',
        state: 'problem',
        says: expect.stringMatching(/is damaged: move it away/),
        advice: 'Correct that, restore a copy, or set DATA_DIR to another folder.',
      },
    ]);
    await rm(folder, { recursive: true });
  });

  it.each([
    ['755', []],
    ['775', ['other users may put other files in the place of those in']],
    ['757', ['other users may put other files in the place of those in']],
  ])('judges who may write to a folder of the mode %s', async (mode, says) => {
    await chmod(empty, Number.parseInt(mode, 8));
    const problems = problemsOf(await examine({ DATA_DIR: empty, PORT: '0' }));
    await chmod(empty, 0o700);
    expect(problems).toEqual(
      says.map((each) => ({
        check: 'database access',
        state: 'problem',
        says: `${each} ${empty}`,
        advice: `Run: chmod 700 ${empty}`,
      })),
    );
  });

  it.each([
    [200 * 1024 ** 2 - 1, 'problem', '0.2'],
    [200 * 1024 ** 2, 'ok', '0.2'],
    [1.75 * 1024 ** 4, 'ok', '1792.0'],
  ])('judges a disk with %i bytes free: %s', async (free, state, gibibytes) => {
    const { bavail: _, ...others } = await fs.statfs(empty);
    const statfs = vi.spyOn(fs, 'statfs');
    // The overload that returns numbers is called.
    statfs.mockResolvedValue({ ...others, bsize: 1, bavail: free } as StatsFs);
    syncBuiltinESMExports();
    try {
      const advice = state === 'problem' ? { advice: 'Make room, or set DATA_DIR to another disk.' } : {};
      const findings = await examine({ DATA_DIR: join(empty, 'not/there'), PORT: '0' });
      const says = `${gibibytes} GiB are free for DATA_DIR`;
      expect(found(findings, 'disk')).toEqual({ check: 'disk', state, says, ...advice });
      // The nearest folder that exists.
      expect(statfs).toHaveBeenCalledWith(empty);
    } finally {
      statfs.mockRestore();
      syncBuiltinESMExports();
    }
  });

  it('finds a port that another program uses', async () => {
    const others = ['port', 'metrics port'].map(() =>
      createServer((socket) => socket.end('220 ready\r\n')).listen(0, '127.0.0.1'),
    );
    await Promise.all(others.map((other) => once(other, 'listening')));
    const [PORT = '', METRICS_PORT = ''] = others.map((other) => String(portOf(other)));
    const problems = problemsOf(await examine({ DATA_DIR: empty, PORT, METRICS_PORT }));
    expect(problems).toEqual(
      [
        ['port', 'PORT', PORT],
        ['metrics port', 'METRICS_PORT', METRICS_PORT],
      ].map(([check, setting, port]) => ({
        check,
        state: 'problem',
        says: `${port} is taken by another program`,
        advice: `Stop it, or set ${setting} to another port; 0 picks a free one.`,
      })),
    );
    for (const other of others) other.close();
  });

  it.each([
    ['a gateway', '127.0.0.1', { '/healthz': 'alive\n' }, 'ok'],
    ['a gateway on every address', '0.0.0.0', { '/healthz': 'alive\n' }, 'ok'],
    ['the metrics of a gateway', '127.0.0.1', { '/metrics': '# TYPE dovetail_build_info gauge' }, 'ok'],
    ['another program with a similar /healthz', '127.0.0.1', { '/healthz': 'alive' }, 'problem'],
    ['the metrics of another program', '127.0.0.1', { '/metrics': '# TYPE build_info gauge' }, 'problem'],
  ])('recognises %s on the port by its response', async (_, host, responses, state) => {
    const texts = new Map(Object.entries(responses));
    const server = createHttpServer(({ url = '' }, response) =>
      response.setHeader('X-Request-Id', 'x').end(texts.get(url) ?? 'no'),
    );
    await once(server.listen(0, host), 'listening');
    const findings = await examine({ DATA_DIR: empty, HOST: host, PORT: String(portOf(server)) });
    expect(found(findings, 'port')?.state).toBe(state);
    server.close();
    server.closeAllConnections();
  });

  it.each([
    [
      'hidden',
      200,
      { ok: true, data: { id: 1 } },
      'ok',
      (url: string) => `${url} responds, and accepts the token`,
    ],
    [
      'hidden',
      401,
      { ok: false, error: 'Unauthorized' },
      'problem',
      () => expect.stringContaining('the token'),
    ],
    [
      'hidden',
      500,
      { ok: false, error: 'Internal server error' },
      'problem',
      () => expect.stringContaining('500'),
    ],
    [
      '',
      401,
      { ok: false, error: 'Unauthorized' },
      'ok',
      (url: string) => `${url} responds; clients bring tokens of it`,
    ],
    ['', 404, {}, 'problem', () => expect.stringContaining('UPSTREAM_URL')],
  ])(
    'sends the upstream one request with the token %j, and judges a response with %i and the body %j',
    async (token, status, body, state, says) => {
      const received: string[] = [];
      const upstream = createHttpServer(({ method, url, headers }, response) => {
        received.push(`${method} ${url} ${headers.authorization}`);
        response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
      });
      await once(upstream.listen(0, '127.0.0.1'), 'listening');
      const url = `http://127.0.0.1:${portOf(upstream)}/api/v1`;
      const settings = { DATA_DIR: empty, PORT: '0', UPSTREAM_URL: url, UPSTREAM_TOKEN: token };
      expect(found(await examine(settings), 'upstream')).toMatchObject({ state, says: says(url) });
      expect(received).toEqual([`GET /api/v1/users/me Bearer ${token || 'doctor'}`]);
      upstream.close();
      upstream.closeAllConnections();
    },
  );

  describe('while a gateway runs', () => {
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

    it('examines its database, and recognises its ports', async () => {
      const findings = await examine({
        DATA_DIR: folder,
        PORT: new URL(gateway.url).port,
        METRICS_PORT: new URL(gateway.metricsUrl ?? '').port,
      });
      expect(findings.map(({ check, state, says }) => `${state} ${check}: ${says}`)).toEqual([
        expect.stringMatching(/^ok node: Node /),
        'ok settings: all of them can be used',
        expect.stringMatching(
          new RegExp(
            `^ok database: PostgreSQL \\d+\\.\\d+.*, embedded, in ${folder}, open in a running gateway$`,
          ),
        ),
        'ok database rights: tables can be created',
        expect.stringMatching(/^ok migrations: all \d+ applied$/),
        'ok triggers: every change is announced',
        'ok database access: only its owner can read it',
        expect.stringMatching(/^ok disk: /),
        expect.stringMatching(/^ok port: a running gateway has \d+$/),
        expect.stringMatching(/^ok metrics port: a running gateway has \d+$/),
      ]);
    });

    it.each(['701', '704', '710', '740'])(
      'finds that other users have access to a folder of the mode %s',
      async (mode) => {
        const files = join(folder, 'postgres');
        await chmod(files, Number.parseInt(mode, 8));
        const problems = problemsOf(await examine({ DATA_DIR: folder, PORT: '0' }));
        await chmod(files, 0o700);
        expect(problems).toEqual([
          {
            check: 'database access',
            state: 'problem',
            says: `other users may read or write ${files}`,
            advice: `Run: chmod 700 ${files}`,
          },
        ]);
      },
    );
  });
});
