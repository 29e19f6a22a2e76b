/** `dovetail user` and `dovetail demo`. */

import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { findToken } from '../../src/auth/tokens.ts';
import { openDatabase } from '../../src/database/database.ts';
import { copyTemplate, copyUnmigrated, type TestDatabase, withClient } from '../support/gateway.ts';
import { runHere } from '../support/runHere.ts';

// Opening a database is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 });

const mirror = { source: 'https://example.com' };

describe('dovetail user', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await copyUnmigrated();
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));
  const dovetail = (...args: string[]) => runHere(args, { DATA_DIR: folder });

  it('says how to create a user in a database without users', async () => {
    const empty = await copyTemplate();
    onTestFinished(() => rm(empty, { recursive: true, force: true }));
    expect(await runHere(['user', 'list'], { DATA_DIR: empty })).toEqual({
      code: 0,
      stdout: 'ID  TIER  TOKENS  NAME\n',
      stderr: `Users of the embedded database in ${empty}:
There are none. Create one: DATA_DIR=${empty} npx dovetail user create me
`,
    });
  });

  it('creates users, changes their tier, lists them by name, and says that it migrates the database first', async () => {
    expect(await dovetail('user', 'create', 'zoe', '--tier', 'ultra')).toEqual({
      code: 0,
      stdout: '',
      stderr: `Applying 1 migration to the database in ${folder} first.
Created user 1, zoe, of the tier ultra, in the embedded database in ${folder}. Next: DATA_DIR=${folder} npx dovetail token create --user zoe --name laptop
`,
    });
    expect((await dovetail('token', 'create', '--user', 'zoe', '--name', 'laptop')).stdout).toMatch(/^dvt_/);
    const created = await dovetail('user', 'create', 'Bob Two', '--tier', 'free', '--json');
    expect(JSON.parse(created.stdout)).toEqual({ id: 2, username: 'Bob Two', tier: 'free' });
    expect(created.stderr).toContain(
      `Only ultra may create tokens: DATA_DIR=${folder} npx dovetail user tier 'Bob Two' ultra\n`,
    );
    expect((await dovetail('user', 'list')).stdout).toBe(
      'ID  TIER   TOKENS  NAME\n2   free   0       Bob Two\n1   ultra  1       zoe\n',
    );
    expect(await dovetail('user', 'tier', 'Bob Two', 'ultra')).toMatchObject({
      code: 0,
      stderr: 'Bob Two has the tier ultra now.\n',
    });
    expect(await dovetail('user', 'tier', 'zoe', 'free')).toMatchObject({
      code: 0,
      stderr: `zoe has the tier free now. Tokens that are still valid: 1. See DATA_DIR=${folder} npx dovetail token list --user zoe\n`,
    });
    expect(await dovetail('user', 'tier', 'zoe', 'ultra')).toMatchObject({
      code: 0,
      stderr: 'zoe has the tier ultra now.\n',
    });
    const { stdout } = await dovetail('user', 'list', '--json');
    expect(JSON.parse(stdout)).toEqual([
      { id: 2, username: 'Bob Two', tier: 'ultra', tokens: 0 },
      { id: 1, username: 'zoe', tier: 'ultra', tokens: 1 },
    ]);
  });

  describe('while another process has the database open', () => {
    let database: TestDatabase;
    beforeAll(async () => {
      database = withClient(await openDatabase({ DATABASE_URL: undefined, DATA_DIR: folder }));
    });
    afterAll(() => database?.close());

    const blank = 'cannot be used: it takes visible characters, and no space at either end.';
    it.each([
      [1, ['user', 'create', 'ZOE'], 'There is already a user named "zoe".'],
      [1, ['user', 'create', ' '], `The name " " ${blank}`],
      [1, ['user', 'create', 'a\u0007'], `The name "a\\u0007" ${blank}`],
      [1, ['user', 'create', 'amy', '--tier', ''], `The tier "" ${blank}`],
      [1, ['user', 'tier', 'nobody', 'ultra'], 'There is no user named "nobody".'],
      [2, ['user', 'create'], "error: missing required argument 'name'"],
      [
        1,
        ['demo'],
        'This database has users or records of its own, and the demo account wants one for itself: name another database in DATABASE_URL or DATA_DIR. There is no way back but to start over: stop the gateway and remove the folder postgres in DATA_DIR; on a server, make a new database.',
      ],
      [
        1,
        ['demo', '--reset'],
        'This database has users or records of its own, and the demo account wants one for itself: name another database in DATABASE_URL or DATA_DIR. There is no way back but to start over: stop the gateway and remove the folder postgres in DATA_DIR; on a server, make a new database.',
      ],
    ])('exits with %i for %j, and prints the reason', async (code, args, message) => {
      expect(await dovetail(...args)).toEqual({ code, stdout: '', stderr: `${message}\n` });
      expect(JSON.parse((await dovetail('user', 'list', '--json')).stdout)).toHaveLength(2);
    });

    it('does not change the accounts of a mirror', async () => {
      await database.client.mirror.create({ data: mirror });
      for (const args of [
        ['user', 'create', 'amy'],
        ['user', 'tier', 'zoe', 'free'],
        ['demo'],
        ['demo', '--reset'],
      ])
        expect(await dovetail(...args)).toEqual({
          code: 1,
          stdout: '',
          stderr:
            'This database mirrors accounts that live elsewhere, which is all that it may have: name another database in DATABASE_URL or DATA_DIR.\n',
        });
    });

    it('advises nothing in a mirror that a mirror rejects', async () => {
      await database.client.mirror.upsert({ where: { id: 1 }, create: mirror, update: {} });
      const create = (name: string) => dovetail('token', 'create', '--user', name, '--name', 'x');
      expect((await create('nobody')).stderr).toBe(
        `There is no user named "nobody". This is a mirror, whose accounts come from the upstream: DATA_DIR=${folder} npx dovetail user list\n`,
      );
      await database.client.user.update({ where: { username: 'zoe' }, data: { subscriptionTier: 'free' } });
      expect((await create('zoe')).stderr).toBe(
        `Creating a token needs the ultra tier; zoe has "free". This is a mirror, whose accounts come from the upstream: DATA_DIR=${folder} npx dovetail user list\n`,
      );
      await database.client.user.deleteMany();
      expect((await dovetail('user', 'list')).stderr).toBe(
        `Users of the embedded database in ${folder}:\nThere are none: an account comes to a mirror with its first request, or by DATA_DIR=${folder} npx dovetail sync\n`,
      );
    });
  });
});

describe('a folder without a database', () => {
  it.each([
    [['user', 'list']],
    [['user', 'tier', 'me', 'free']],
    [['token', 'list', '--user', 'me']],
    [['token', 'create', '--user', 'me', '--name', 'x']],
    [['token', 'revoke', '1']],
  ])('is reported, and no database is created in it: %j', async (args) => {
    const folder = await mkdtemp(join(tmpdir(), 'dovetail-test-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    expect(await runHere(args, { DATA_DIR: relative('.', join(folder, 'data')) })).toEqual({
      code: 1,
      stdout: '',
      stderr: `There is no database in ${folder}/data. Run this where the gateway was started, or set DATA_DIR or DATABASE_URL as it has them.\n`,
    });
    expect(await readdir(folder)).toEqual([]);
  });
});

describe('dovetail demo', () => {
  it('creates the demo account, prints its token, resets the account but not its tokens, and reports why there can be no new token', async () => {
    const folder = await copyTemplate();
    const database = withClient(await openDatabase({ DATABASE_URL: undefined, DATA_DIR: folder }));
    const { client } = database;
    onTestFinished(async () => {
      await database.close();
      await rm(folder, { recursive: true, force: true });
    });
    const demo = (...args: string[]) => runHere(['demo', ...args], { DATA_DIR: folder });
    const first = await demo();
    expect(first).toMatchObject({ code: 0, stderr: 'The demo account is there. Its token:\n' });
    expect(first.stdout).toBe(await readFile(join(folder, 'demo-token'), 'utf8'));
    expect((await demo()).stdout).toBe(first.stdout);

    const token = first.stdout.trim();
    const before = await findToken(database.sql, token);
    await client.dttSession.deleteMany();
    await client.user.updateMany({ data: { subscriptionTier: 'free' } });
    expect(await demo('--reset')).toEqual({
      ...first,
      stderr: 'The demo account is as it was at first. Its token:\n',
    });
    expect(await client.dttSession.count()).toBe(60);
    expect(await findToken(database.sql, token)).toMatchObject({ id: before?.id });

    await rm(join(folder, 'demo-token'));
    await client.apiToken.updateMany({ data: { name: 'mine' } });
    for (const name of 'abcd')
      await runHere(['token', 'create', '--user', 'demo', '--name', name], { DATA_DIR: folder });
    const but = 'it can have no new token:';
    expect(await demo()).toEqual({
      code: 1,
      stdout: '',
      stderr: `The demo account is there, but ${but} it has 5, the most that there may be. Revoke one of them: DATA_DIR=${folder} npx dovetail token list --user demo\n`,
    });
    await client.apiToken.deleteMany();
    await client.user.updateMany({ data: { subscriptionTier: 'free' } });
    expect(await demo()).toEqual({
      code: 1,
      stdout: '',
      stderr: `The demo account is there, but ${but} only the tier ultra may have any. Move it there: DATA_DIR=${folder} npx dovetail user tier demo ultra\n`,
    });
  });
});
