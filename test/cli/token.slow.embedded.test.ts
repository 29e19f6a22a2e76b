/** `dovetail token`, and what all commands have in common. */

import { readFile, rm } from 'node:fs/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openDatabase } from '../../src/database/database.ts';
import { commandName, connectionTo } from '../../src/database/embedded/server.ts';
import { unresponsive } from '../../src/database/session.ts';
import { loadDemo } from '../support/demo.ts';
import { copyTemplate, withClient } from '../support/gateway.ts';
import { endProcesses, runCli, type ServedGateway, serve } from '../support/processes.ts';
import { runHere } from '../support/runHere.ts';

let folder: string;
let gateway: ServedGateway;
beforeAll(async () => {
  folder = await copyTemplate();
  const database = withClient(await openDatabase({ DATABASE_URL: undefined, DATA_DIR: folder }));
  await loadDemo(database, folder);
  // Control characters in the name of a token were allowed once.
  const old = { name: 'old\n\x1b[31mname', slot: 1, digest: new Uint8Array(32), revokedAt: new Date() };
  await database.client.apiToken.create({ data: { ...old, user: { connect: { username: 'demo' } } } });
  await database.close();
  gateway = await serve({ DATA_DIR: folder });
});
afterAll(async () => {
  await endProcesses();
  await rm(folder, { recursive: true, force: true });
});

const dovetail = (...args: string[]) => runHere(args, { DATA_DIR: folder });
const createFor = (user: string, ...others: string[]) => ['token', 'create', '--user', user, ...others];
const named = (...others: string[]) => createFor('demo', '--name', ...others);
const statusWith = async (secret: string) =>
  (await fetch(`${gateway.url}/api/v1/users/me`, { headers: { Authorization: `Bearer ${secret}` } })).status;
const listOf = async () => JSON.parse((await dovetail('token', 'list', '--user', 'demo', '--json')).stdout);

it('creates, lists and revokes tokens while a gateway runs, where that takes effect at once', async () => {
  const created = await runCli(named('beside'), { DATA_DIR: folder });
  const secret = created.stdout.trim();
  const [, id = ''] =
    /^Created token (\d+) for demo, with the scope activate\. Keep it: .* --scope manage\.\n$/.exec(
      created.stderr,
    ) ?? [];
  expect(created.stdout).toMatch(/^dvt_[\w-]{43}\n$/);
  expect(await statusWith(secret)).toBe(200);
  const second = JSON.parse((await dovetail(...named('second', '--json'))).stdout);
  const token = expect.stringMatching(/^dvt_/);
  expect(second).toEqual({ id: Number(id) + 1, user: 'demo', name: 'second', token });

  const { stdout, stderr } = await dovetail('token', 'list', '--user', 'demo');
  expect(stderr).toBe('');
  expect(stdout).not.toContain(secret);
  expect(stdout.trimEnd().split('\n')).toEqual([
    expect.stringMatching(/^ID +STATE +SCOPE +CREATED +LAST USED +EXPIRES +BEGINS WITH +NAME$/),
    expect.stringMatching(
      new RegExp(
        `^${second.id} +active +activate +\\S+Z +never +never +${second.token.slice(0, 8)} +second$`,
      ),
    ),
    expect.stringMatching(
      new RegExp(`^${id} +active +activate +\\S+Z +\\S+Z +never +${secret.slice(0, 8)} +beside$`),
    ),
    expect.stringMatching(/^\d+ +revoked .* old {2}\[31mname$/),
    expect.stringMatching(/^1 +active +manage_on_loopback .* demo-token$/),
  ]);

  const revoked = { code: 0, stdout: '', stderr: `Revoked token ${id}.\n` };
  expect(await dovetail('token', 'revoke', id)).toEqual(revoked);
  expect(await statusWith(secret)).toBe(401);
  expect(await listOf()).toMatchObject([
    { id: second.id, revokedAt: null },
    { id: Number(id), name: 'beside', revokedAt: expect.any(String) },
    { revokedAt: expect.any(String) },
    { revokedAt: null },
  ]);
});

it('creates a token with a scope and a date, and rotates it; the secret before is valid as long as it is told', async () => {
  const { stdout } = await dovetail(...named('dated', '--scope', 'read', '--expires', '90d'));
  let [first, second] = [stdout.trim(), stdout.trim()];
  expect(await statusWith(first)).toBe(200);
  const [listed] = await listOf();
  const inDays = (Date.parse(listed.expiresAt) - Date.now()) / 86_400_000;
  expect(listed).toMatchObject({ name: 'dated', scope: 'read', state: 'active' });
  expect(inDays).toBeCloseTo(90, 2);
  for (const [hours, ...keep] of [
    [0.5, '--keep', '30m'] as const,
    [2, '--keep', '2h'] as const,
    [1] as const,
  ]) {
    const kept = await dovetail('token', 'rotate', String(listed.id), ...keep);
    [first, second] = [second, kept.stdout.trim()];
    const said = /^Rotated token \d+\. .* The one before is valid until (\S+Z), unless/.exec(kept.stderr);
    expect((Date.parse(said?.[1] ?? '') - Date.now()) / 3_600_000).toBeCloseTo(hours, 2);
  }
  expect((await dovetail('token', 'rotate', '--help')).stdout).toContain('(default: 1h)');
  expect(await Promise.all([first, second].map(statusWith))).toEqual([200, 200]);
  const replaced = await dovetail('token', 'rotate', String(listed.id), '--keep', '0');
  expect(replaced.stderr).toMatch(/The one before is invalid now\.\n$/);
  await expect
    .poll(() => Promise.all([first, second, replaced.stdout.trim()].map(statusWith)))
    .toEqual([401, 401, 200]);
  expect(await listOf()).toContainEqual({
    ...listed,
    prefix: replaced.stdout.slice(0, 8),
    lastUsedAt: expect.any(String),
  });
  await dovetail('token', 'revoke', String(listed.id));
});

it('reports in one line that the database did not respond, while another client occupies it', async () => {
  const holder = new pg.Client(connectionTo(folder, commandName));
  // The engine ends a connection that occupies it for long.
  holder.on('error', () => {});
  await holder.connect();
  await holder.query('BEGIN; SELECT 1');
  const stderr = `Gave up: ${unresponsive}\n`;
  expect(await dovetail(...named('late'))).toEqual({ code: 1, stdout: '', stderr });
  await holder.end();
  expect(JSON.stringify(await listOf())).not.toContain('late');
});

const change = 'To change that: DATA_DIR=\\S+ npx dovetail-gateway user';
const invalid: readonly (readonly [number, readonly string[], string])[] = [
  [
    1,
    createFor('nobody', '--name', 'x'),
    `^There is no user named "nobody"\\. ${change} create nobody --tier ultra$`,
  ],
  [
    1,
    createFor('coach', '--name', 'x'),
    `^Creating a token needs the ultra tier; the account has "free"\\. ${change} tier coach ultra$`,
  ],
  [2, createFor('demo'), "^error: required option '--name <text>' not specified"],
  [2, named('x', '--scope', 'write'), 'Allowed choices are read, activate, manage\\.$'],
  [2, named('x', '--expires', '2027-13-01'), "^error: option '--\\w+ <\\w+>'"],
  [1, named('x', '--expires', '2020-01-01'), '^The time at which a token expires must be in the future$'],
  [2, ['token', 'rotate', '1', '--keep', '1 h'], "^error: option '--keep <duration>'"],
  [2, ['user', 'tier', 'demo', 'gold'], 'Allowed choices are free, ultra\\.$'],
  [2, ['surf'], "^error: unknown command 'surf'\nnpx dovetail-gateway --help lists the commands$"],
  [1, ['sync'], '^Say where the account is, with --from or UPSTREAM_URL\\.$'],
];
it.each(invalid)(
  'exits with %i for %j, and prints the reason only on standard error',
  async (exit, args, message) => {
    const { code, stdout, stderr } = await dovetail(...args);
    expect({ code, stdout }).toEqual({ code: exit, stdout: '' });
    expect(stderr.trimEnd()).toMatch(new RegExp(message));
  },
);

it('advises a user of the tier ultra to revoke a token where there are five, and no other tier', async () => {
  for (const name of ['b', 'c', 'd', 'e']) await dovetail(...named(name));
  const stderr = 'The account already has 5 active tokens; revoke one first\n';
  expect(await dovetail(...named('f'))).toEqual({ code: 1, stdout: '', stderr });
});

it('prints help with --help, and as an error where a command is missing', async () => {
  const help = /serve.* .*token .*migrate .*Examples:.*Exit codes:/s;
  expect(await dovetail('--help')).toEqual({ code: 0, stdout: expect.stringMatching(help), stderr: '' });
  expect(await dovetail()).toEqual({ code: 2, stdout: '', stderr: expect.stringMatching(help) });
});

it.each(['--version', '-v'])('%s prints the version of the package', async (flag) => {
  const { version } = JSON.parse(await readFile('package.json', 'utf8'));
  expect(await runHere([flag], {})).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
});
