/** `dovetail user` and `dovetail demo`. */

import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { openDatabase } from '../../src/database/database.ts';
import { copyTemplate, copyUnmigrated, type TestDatabase, withClient } from '../support/gateway.ts';
import { newFolder } from '../support/newFolder.ts';
import { runHere } from '../support/runHere.ts';

const open = async (folder: string) =>
  withClient(await openDatabase({ DATABASE_URL: undefined, DATA_DIR: folder }));

describe('dovetail user', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await copyUnmigrated();
    return () => rm(folder, { recursive: true, force: true });
  });
  // A shell may have the token of an upstream for `sync --from`.
  const dovetail = (...args: string[]) => runHere(args, { DATA_DIR: folder, UPSTREAM_TOKEN: 'dvt_x' });

  it('creates users, changes their tier, lists them by name, and says that it migrates the database first', async () => {
    expect(await dovetail('user', 'create', 'zoe')).toEqual({
      code: 0,
      stdout: '',
      stderr: `Applying 3 migrations to the embedded database in ${folder}.
Created user 1, zoe, of the tier ultra, in the embedded database in ${folder}. Next: DATA_DIR=${folder} npx dovetail-gateway token create --user zoe --name laptop --scope manage
`,
    });
    expect((await dovetail('token', 'create', '--user', 'zoe', '--name', 'laptop')).stdout).toMatch(/^dvt_/);
    const created = await dovetail('user', 'create', 'Bob Two', '--tier', 'free', '--json');
    expect(JSON.parse(created.stdout)).toEqual({ id: 2, username: 'Bob Two', tier: 'free' });
    expect(created.stderr).toContain(
      `Only ultra may create tokens: DATA_DIR=${folder} npx dovetail-gateway user tier 'Bob Two' ultra\n`,
    );
    expect(await dovetail('user', 'list')).toEqual({
      code: 0,
      stdout: 'ID  TIER   TOKENS  NAME\n2   free   0       Bob Two\n1   ultra  1       zoe\n',
      stderr: `Users of the embedded database in ${folder}:\n`,
    });
    for (const tier of ['free', 'ultra'])
      expect((await dovetail('user', 'tier', 'Bob Two', tier)).stderr).toBe(
        `Bob Two has the tier ${tier} now.\n`,
      );
    expect((await dovetail('user', 'tier', 'zoe', 'free')).stderr).toBe(
      `zoe has the tier free now. Tokens that are still valid: 1. See DATA_DIR=${folder} npx dovetail-gateway token list --user zoe\n`,
    );
    expect(JSON.parse((await dovetail('user', 'list', '--json')).stdout)).toEqual([
      { id: 2, username: 'Bob Two', tier: 'ultra', tokens: 0 },
      { id: 1, username: 'zoe', tier: 'free', tokens: 1 },
    ]);
  });

  describe('while another process has the database open', () => {
    let database: TestDatabase;
    beforeAll(async () => {
      database = await open(folder);
      return () => database.close();
    });

    it('does not change the accounts of a mirror', async () => {
      await database.client.mirror.create({ data: { source: 'https://example.com' } });
      for (const args of [
        ['user', 'create', 'amy'],
        ['user', 'tier', 'zoe', 'ultra'],
      ])
        expect(await dovetail(...args)).toEqual({
          code: 1,
          stdout: '',
          stderr:
            'This database mirrors accounts that live elsewhere, which is all that it may have: name another database in DATABASE_URL or DATA_DIR.\n',
        });
      const { stderr } = await dovetail('token', 'create', '--user', 'nobody', '--name', 'x');
      expect(stderr).toBe(
        'There is no user named "nobody". This is a mirror, whose accounts come from the upstream.\n',
      );
      await database.client.user.deleteMany();
      expect((await dovetail('user', 'list')).stderr).toContain(
        `There are none: an account comes to a mirror with its first request, or by DATA_DIR=${folder} npx dovetail-gateway sync\n`,
      );
    });
  });
});

it('a folder without a database is reported, and no database is created in it', async () => {
  const folder = newFolder();
  expect(await runHere(['user', 'list'], { DATA_DIR: relative('.', join(folder, 'data')) })).toEqual({
    code: 1,
    stdout: '',
    stderr: `There is no database in ${folder}/data. Run this where the gateway was started, or set DATA_DIR or DATABASE_URL as it has them.\n`,
  });
  expect(await readdir(folder)).toEqual([]);
  const beneath = join(newFolder(), 'file');
  await writeFile(beneath, '');
  const { stderr } = await runHere(['user', 'list'], { DATA_DIR: join(beneath, 'data') });
  expect(stderr).toContain(`There is no database in ${beneath}/data. `);
});

it('`demo` creates the demo account, and prints its token', async () => {
  const folder = await copyTemplate();
  const database = await open(folder);
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

  await client.apiToken.deleteMany();
  await client.user.updateMany({ data: { subscriptionTier: 'free' } });
  expect(await demo()).toEqual({
    code: 1,
    stdout: '',
    stderr: `The demo account is there, but can have no new token: it has 5, the most that there may be, or is not of the tier ultra. See DATA_DIR=${folder} npx dovetail-gateway token list --user demo\n`,
  });
});
