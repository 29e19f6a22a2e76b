import { rm } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { copyTemplate, type DemoGateway, openDemoGateway } from '../gateway.ts';
import { endProcesses, runCli } from '../processes.ts';

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
