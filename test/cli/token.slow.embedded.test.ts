/** `dovetail token`. */

import { readFile, rm } from 'node:fs/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { findToken } from '../../src/auth/tokens.ts';
import { openDatabase } from '../../src/database/database.ts';
import { commandName, connectionTo } from '../../src/database/embedded/server.ts';
import type { PrismaClient } from '../../src/database/generated/prisma/client.ts';
import { unresponsiveText } from '../../src/database/session.ts';
import { prepareDemo } from '../../src/demo/demoAccount.ts';
import { copyTemplate, withClient } from '../support/gateway.ts';
import { endProcesses, runCli, type ServedGateway, serve } from '../support/processes.ts';
import { runHere } from '../support/runHere.ts';

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 90_000 });

let folder: string;
beforeAll(async () => {
  folder = await copyTemplate();
  const database = await openFolder();
  await prepareDemo(database, folder);
  await database.close();
});
afterAll(async () => {
  await endProcesses();
  await rm(folder, { recursive: true, force: true });
});

const openFolder = () => openDatabase({ DATABASE_URL: undefined, DATA_DIR: folder });
const token = (...args: string[]) => runHere(['token', ...args], { DATA_DIR: folder });

async function list() {
  const { stdout } = await token('list', '--user', 'demo', '--json');
  const tokens: { id: number; name: string; lastUsedAt: string | null; revokedAt: string | null }[] =
    JSON.parse(stdout);
  return tokens;
}

/** The secret and the id of a token that was created, by the output of the command. */
function createdBy({ code, stdout, stderr }: Awaited<ReturnType<typeof runCli>>) {
  expect(stderr).toMatch(/^Created token \d+ for demo\. Keep it: it is not shown again\.\n$/);
  expect(stdout).toMatch(/^dvt_[\w-]{43}\n$/);
  expect(code).toBe(0);
  return { secret: stdout.trim(), id: /\d+/.exec(stderr)?.[0] ?? '' };
}

describe('dovetail token', () => {
  it('creates, lists and revokes tokens while no gateway runs', async () => {
    const remaining = createdBy(await token('create', '--user', 'demo', '--name', 'remaining'));
    const created = await token('create', '--user', 'demo', '--name', 'revoked', '--json');
    const revoked: { id: number; token: string } = JSON.parse(created.stdout);
    expect(revoked).toEqual({
      id: Number(remaining.id) + 1,
      user: 'demo',
      name: 'revoked',
      token: expect.stringMatching(/^dvt_[\w-]{43}$/),
    });
    expect(await token('revoke', String(revoked.id))).toEqual({
      code: 0,
      stdout: '',
      stderr: `Revoked token ${revoked.id}.\n`,
    });
    expect((await list()).slice(0, 2)).toMatchObject([
      { id: revoked.id, name: 'revoked', lastUsedAt: null, revokedAt: expect.any(String) },
      { id: Number(remaining.id), name: 'remaining', lastUsedAt: null, revokedAt: null },
    ]);
    // The folder is unlocked again after each command.
    const database = await openFolder();
    try {
      expect(await findToken(database.sql, remaining.secret)).toMatchObject({ id: Number(remaining.id) });
      expect(await findToken(database.sql, revoked.token)).toBeNull();
    } finally {
      await database.close();
    }
  });

  it('lists a token in one line also if its name has control characters, which were allowed once', async () => {
    const run = async (change: (tokens: PrismaClient['apiToken']) => Promise<unknown>) => {
      const database = withClient(await openFolder());
      await change(database.client.apiToken);
      await database.close();
    };
    const old = { name: 'old\n\x1b[31mname', slot: 1, digest: new Uint8Array(32), revokedAt: new Date() };
    await run((tokens) => tokens.create({ data: { ...old, user: { connect: { username: 'demo' } } } }));
    const { stdout } = await token('list', '--user', 'demo');
    expect(stdout.split('\n')[1]).toMatch(/^\d+ +revoked .* old {2}\[31mname$/);
    await run((tokens) => tokens.deleteMany({ where: { name: old.name } }));
  });

  describe('while a gateway runs', () => {
    let gateway: ServedGateway;
    beforeAll(async () => {
      gateway = await serve({ DATA_DIR: folder });
    });

    async function statusWith(secret: string): Promise<number> {
      const headers = { Authorization: `Bearer ${secret}` };
      return (await fetch(`${gateway.url}/api/v1/users/me`, { headers })).status;
    }

    it('reports in one line that the database did not respond, while another client occupies it', async () => {
      const holder = new pg.Client(connectionTo(folder, commandName));
      await holder.connect();
      await holder.query('BEGIN; SELECT 1');
      expect(await token('create', '--user', 'demo', '--name', 'late')).toEqual({
        code: 1,
        stdout: '',
        stderr: `Gave up: ${unresponsiveText}\n`,
      });
      await holder.end();
      expect((await list()).map(({ name }) => name)).not.toContain('late');
    });

    it('creates, lists and revokes tokens, which takes effect in the gateway at once', async () => {
      const create = ['token', 'create', '--user', 'demo', '--name', 'beside'];
      const { secret, id } = createdBy(await runCli(create, { DATA_DIR: folder }));
      expect(await statusWith(secret)).toBe(200);

      const table = await token('list', '--user', 'demo');
      const lines = table.stdout.trimEnd().split('\n');
      expect(lines[0]).toMatch(/^ID +STATE +CREATED +LAST USED +NAME$/);
      expect(lines[1]).toMatch(new RegExp(`^${id} +active +\\S+Z +\\S+Z +beside$`));
      expect(lines[2]).toMatch(/^\d+ +revoked +\S+Z +never +revoked$/);
      // The columns are aligned.
      for (const title of ['STATE', 'CREATED', 'LAST USED', 'NAME']) {
        const column = lines[0]?.indexOf(title) ?? 0;
        for (const line of lines) expect(line.slice(column - 2, column + 1)).toMatch(/^ {2}\S$/);
      }
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

    const invalid: readonly (readonly [number, readonly string[], string | RegExp])[] = [
      [
        1,
        ['token', 'create', '--user', 'nobody', '--name', 'x'],
        /^There is no user named "nobody"\. To change that: DATA_DIR=\S+ npx dovetail user create nobody --tier ultra$/,
      ],
      [
        1,
        ['token', 'create', '--user', 'coach', '--name', 'x'],
        /^Creating a token needs the ultra tier; coach has "free"\. To change that: DATA_DIR=\S+ npx dovetail user tier coach ultra$/,
      ],
      [1, ['token', 'create', '--user', 'demo', '--name', ' '], /^A token needs a name/],
      [
        1,
        ['token', 'create', '--user', 'nobody', '--name', 'a\nb'],
        /^The name of a token takes .* alone\.$/,
      ],
      [2, ['token', 'create', '--user', 'demo'], /^error: required option '--name <text>' not specified/],
      [2, ['token', 'create', '--name', 'x'], /^error: required option '--user <username>' not specified/],
      [1, ['token', 'list', '--user', 'nobody'], 'There is no user named "nobody".'],
      [2, ['token', 'list'], /^error: required option '--user <username>' not specified/],
      [1, ['token', 'revoke', '2147483647'], 'There is no active token with the id 2147483647.'],
      [2, ['token', 'revoke', '0x1'], /It takes a number from the list\./],
      [2, ['token', 'revoke', '0'], /It takes a number from the list\./],
      [2, ['token', 'revoke', '01'], /It takes a number from the list\./],
      [2, ['token', 'revoke', '2147483648'], /It takes a number from the list\./],
      [2, ['token', 'revoke'], /^error: missing required argument 'id'/],
      [2, ['token', 'steal'], /^error: unknown command 'steal'/],
      [2, ['token', 'list', '--user', 'demo', '--loud'], /^error: unknown option '--loud'/],
      [2, ['surf'], /^error: unknown command 'surf'/],
      [2, ['serve', 'now'], /^error: too many arguments/],
    ];
    it.each(invalid)(
      'exits with %i for %j, and prints the reason only on standard error',
      async (exit, args, message) => {
        const { code, stdout, stderr } = await runHere(args, { DATA_DIR: folder });
        expect({ code, stdout }).toEqual({ code: exit, stdout: '' });
        expect(stderr.trimEnd()).toMatch(message);
        expect(stderr.trimEnd().split('\n')).toHaveLength(1);
      },
    );
  });
});

describe('dovetail', () => {
  it.each([
    [2, ['surf'], /^error: unknown command 'surf'\n$/],
    [1, ['sync'], 'Say where the account is, with --from or UPSTREAM_URL.\n'],
  ])('exits with %i for %j as a process', async (exit, args, message) => {
    const { code, stdout, stderr } = await runCli(args, { DATA_DIR: folder });
    expect({ code, stdout }).toEqual({ code: exit, stdout: '' });
    expect(stderr).toMatch(message);
  });

  it('prints help with --help, and exits with 0', async () => {
    const { code, stdout, stderr } = await runHere(['--help'], { DATA_DIR: folder });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/serve .*token .*sync .*migrate .*doctor .*Examples:.*Exit codes:/s);
    // Not a terminal: no colours.
    expect(stdout).not.toContain('\u001b');
  });

  it.each([[['token']], [[]]])('prints the commands if none is given: %j', async (args) => {
    const { code, stdout, stderr } = await runHere(args, { DATA_DIR: folder });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^Usage: dovetail .*Commands:.*/s);
  });

  it.each(['--version', '-v'])('%s prints the version of the package', async (flag) => {
    const { version } = JSON.parse(await readFile('package.json', 'utf8'));
    expect(await runHere([flag], {})).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
  });

  it('warns about variables that are similar to a setting', async () => {
    const { code, stderr } = await runHere(['migrate'], {
      DATA_DIR: folder,
      DATABASEURL: 'x',
      LOG_LEVELS: 'y',
    });
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: `DATABASEURL is no setting, and has no effect: is DATABASE_URL meant?
LOG_LEVELS is no setting, and has no effect: is LOG_LEVEL meant?
No migrations are pending.
`,
    });
  });

  it('prints one line if a setting cannot be used', async () => {
    const { code, stdout, stderr } = await runHere(['token', 'list', '--user', 'demo'], {
      DATABASE_URL: 'postgresql://me:secret@127.0.0.1:1/app',
    });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toBe(
      'DATABASE_URL is "postgresql://me:***@127.0.0.1:1/app", but cannot be reached: connect ECONNREFUSED 127.0.0.1:1. Start the server, or correct DATABASE_URL; unset it for the embedded database.\n',
    );
  });
});
