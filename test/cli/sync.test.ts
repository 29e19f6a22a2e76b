import { rm } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { copyTemplate, type DemoGateway, openDemoGateway } from '../gateway.ts';
import { endProcesses, runCli } from '../processes.ts';
import { openProxy, pathOf, reply } from '../sync/upstream.ts';

// Starting processes takes its time on a busy machine.
vi.setConfig({ testTimeout: 90_000 });

let source: DemoGateway;
let folder: string;
beforeAll(async () => {
  source = await openDemoGateway();
  folder = await copyTemplate();
});
afterEach(endProcesses);
afterAll(async () => {
  await source?.close();
  await rm(folder, { recursive: true, force: true });
});

const sync = (token: string, ...args: string[]) =>
  runCli(['sync', '--from', `${source.url}/api/v1`, ...args], { DATA_DIR: folder, UPSTREAM_TOKEN: token });

it('mirrors an account, with the table alone on standard output, and then only what is new', async () => {
  const first = await sync(source.token);
  expect(first.stderr).toMatch(/^user: 1 fetched, 1 created.*\nDone, with \d+ requests\.\nNext: dovetail /s);
  expect(first.stdout).toMatch(/^ +fetched +created .*\nuser +1 +1 /);
  expect(first.code).toBe(0);

  const second = await sync(source.token, '--json');
  expect(second.stderr).toMatch(/\nNothing has changed, with \d+ requests\.\n/);
  expect(JSON.parse(second.stdout)).toMatchObject({
    username: 'demo',
    requests: expect.any(Number),
    records: { user: { fetched: 1, created: 0, unchanged: 1 } },
  });
  expect(second.code).toBe(0);
});

it('exits 1 with a line for a token that the upstream does not accept', async () => {
  const { code, stdout, stderr } = await sync('dvt_wrong');
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toBe('GET /users/me: the upstream does not accept the token\n');
});

it('asks for the records that it is told of by their ids, each kind for its own, where they are not listed', async () => {
  const proxy = await openProxy(source);
  proxy.misbehave = (request, response) =>
    /^\/(lkbx(\/templates|\/sessions)?|ossm)$/.test(pathOf(request)) &&
    reply(response, 404, { ok: false, error: 'Not found' });
  const empty = await copyTemplate();
  try {
    const { code, stdout } = await runCli(
      `sync --json --from ${proxy.base} --lkbx 1 --lock-template 2 --lock-session 5,6`.split(' '),
      { DATA_DIR: empty, UPSTREAM_TOKEN: source.token },
    );
    expect(code).toBe(0);
    const asked = proxy.requests.filter((line) => /^GET \/lkbx\/.*\d$/.test(line));
    // The active session was started from the first template, and is known to be the first.
    expect(asked.sort()).toEqual([
      'GET /lkbx/1',
      'GET /lkbx/sessions/1',
      'GET /lkbx/sessions/5',
      'GET /lkbx/sessions/6',
      'GET /lkbx/templates/1',
      'GET /lkbx/templates/2',
    ]);
    expect(JSON.parse(stdout).records).toMatchObject({
      'LKBX devices': { created: 1 },
      'lock templates': { created: 2 },
      'lock sessions': { created: 3 },
    });
  } finally {
    await proxy.close();
    await rm(empty, { recursive: true, force: true });
  }
});
