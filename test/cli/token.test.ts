import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { endProcesses, runCli, type ServedGateway, serve } from '../processes.ts';

// Starting processes takes its time on a busy machine.
vi.setConfig({ testTimeout: 90_000 });

let folder: string;
let gateway: ServedGateway | undefined;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dovetail-cli-'));
  const engine = inject('engine');
  if (engine.kind === 'embedded') await cp(engine.template, folder, { recursive: true });
  await startGateway();
});
afterAll(async () => {
  await endProcesses();
  await rm(folder, { recursive: true, force: true });
});

async function startGateway(): Promise<ServedGateway> {
  gateway ??= await serve({ DATA_DIR: folder });
  return gateway;
}

async function stopGateway(): Promise<void> {
  gateway?.child.kill('SIGTERM');
  await gateway?.exit;
  gateway = undefined;
}

const token = (...args: string[]) => runCli(['token', ...args], { DATA_DIR: folder });
async function list() {
  const { stdout } = await token('list', '--user', 'demo', '--json');
  const tokens: { id: number; name: string; lastUsedAt: string | null; revokedAt: string | null }[] =
    JSON.parse(stdout);
  return tokens;
}

async function statusWith(secret: string): Promise<number> {
  const { url } = await startGateway();
  const response = await fetch(`${url}/api/v1/users/me`, { headers: { Authorization: `Bearer ${secret}` } });
  return response.status;
}

/** Creates a token and checks how that is said; its secret and its id. */
async function createNamed(name: string) {
  const { code, stdout, stderr } = await token('create', '--user', 'demo', '--name', name);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^dvt_[\w-]{43}\n$/);
  expect(stderr).toMatch(/^Created token \d+ for demo\..*\n$/);
  return { secret: stdout.trim(), id: /\d+/.exec(stderr)?.[0] ?? '' };
}

describe('dovetail token', () => {
  it('creates, lists and revokes while a gateway runs, which follows at once', async () => {
    await startGateway();
    const { secret, id } = await createNamed('beside');
    expect(await statusWith(secret)).toBe(200);

    const table = await token('list', '--user', 'demo');
    const lines = table.stdout.trimEnd().split('\n');
    expect(lines[0]).toMatch(/^ID +STATE +CREATED +LAST USED +NAME$/);
    expect(lines[1]).toMatch(new RegExp(`^${id} +active +\\S+Z +\\S+Z +beside$`));
    expect(table).toMatchObject({ code: 0, stderr: '' });
    expect(table.stdout).not.toContain(secret);

    expect(await token('revoke', id)).toEqual({ code: 0, stdout: '', stderr: `Revoked token ${id}.\n` });
    expect(await statusWith(secret)).toBe(401);
    expect((await list())[0]).toMatchObject({
      id: Number(id),
      name: 'beside',
      revokedAt: expect.any(String),
    });
  });

  it('creates, lists and revokes while no gateway runs', async () => {
    await stopGateway();
    const kept = await createNamed('kept');
    const created = await token('create', '--user', 'demo', '--name', 'revoked', '--json');
    const revoked: { id: number; token: string } = JSON.parse(created.stdout);
    expect(revoked).toEqual({
      id: expect.any(Number),
      user: 'demo',
      name: 'revoked',
      token: expect.any(String),
    });
    expect(await token('revoke', String(revoked.id))).toMatchObject({ code: 0, stdout: '' });
    expect((await list()).slice(0, 2)).toMatchObject([
      { id: revoked.id, name: 'revoked', lastUsedAt: null, revokedAt: expect.any(String) },
      { id: Number(kept.id), name: 'kept', lastUsedAt: null, revokedAt: null },
    ]);
    expect(await statusWith(kept.secret)).toBe(200);
    expect(await statusWith(revoked.token)).toBe(401);
  });
});

describe('dovetail', () => {
  beforeAll(startGateway);

  it.each([
    [1, ['token', 'create', '--user', 'nobody', '--name', 'x'], 'There is no user named "nobody".'],
    [
      1,
      ['token', 'create', '--user', 'coach', '--name', 'x'],
      'Creating a token needs the ultra tier; coach has "free".',
    ],
    [1, ['token', 'create', '--user', 'demo', '--name', ' '], /^A token needs a name/],
    [2, ['token', 'create', '--user', 'demo'], /^error: required option '--name <text>' not specified/],
    [1, ['token', 'list', '--user', 'nobody'], 'There is no user named "nobody".'],
    [2, ['token', 'list'], /^error: required option '--user <username>' not specified/],
    [1, ['token', 'revoke', '2000000000'], 'There is no active token with the id 2000000000.'],
    [2, ['token', 'revoke', '0x1'], /It takes a number from the list\./],
    [2, ['token', 'revoke', '3000000000'], /It takes a number from the list\./],
    [2, ['token', 'steal'], /^error: unknown command 'steal'/],
    [2, ['token', 'list', '--user', 'demo', '--loud'], /^error: unknown option '--loud'/],
    [2, ['surf'], /^error: unknown command 'surf'/],
    [2, ['sync', '--lkbx', '1,x'], /It takes ids such as 1,2\./],
    [2, ['serve', 'now'], /^error: too many arguments/],
  ])('exits %i for %j and says why on standard error alone', async (exit, args, message) => {
    const { code, stdout, stderr } = await runCli(args, { DATA_DIR: folder });
    expect({ code, stdout }).toEqual({ code: exit, stdout: '' });
    expect(stderr.trimEnd()).toMatch(message);
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
  });

  it('--help exits 0', async () => {
    const { code, stdout, stderr } = await runCli(['--help'], { DATA_DIR: folder });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/serve .*token .*sync .*doctor .*Examples:.*Exit codes:/s);
    // Not a terminal: no colours.
    expect(stdout).not.toContain('\u001b');
  });

  it('--version is that of the package', async () => {
    const { version } = JSON.parse(await readFile('package.json', 'utf8'));
    expect(await runCli(['--version'], {})).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
  });

  it('a wrong setting is one line for it, too', async () => {
    const { code, stdout, stderr } = await runCli(['token', 'list', '--user', 'demo'], {
      DATABASE_URL: 'postgresql://me:secret@127.0.0.1:1/app',
    });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toBe(
      'DATABASE_URL is "postgresql://me:***@127.0.0.1:1/app", but cannot be reached: connect ECONNREFUSED 127.0.0.1:1\n',
    );
  });
});
