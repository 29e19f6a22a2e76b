/** `dovetail user` and `dovetail demo`. */

import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { findToken } from '../../src/auth/tokens.ts';
import { openDatabase } from '../../src/database/database.ts';
import { copyTemplate, copyUnmigrated } from '../support/gateway.ts';
import { runHere } from '../support/runHere.ts';

// To open a database takes its time on a busy machine.
vi.setConfig({ testTimeout: 60_000 });

describe('dovetail user', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await copyUnmigrated();
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));
  const dovetail = (...args: string[]) => runHere(args, { DATA_DIR: folder });

  it('says that it migrates the database before it does, and lists nobody in it', async () => {
    const { code, stdout, stderr } = await dovetail('user', 'list');
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'ID  TIER  TOKENS  NAME\n' });
    expect(stderr).toBe(
      `Applying 1 migration to the database in ${folder} first.
There are none. Create one: DATA_DIR=${folder} npx dovetail user create me
`,
    );
  });

  it('creates users who may have tokens, moves them to another tier, and lists them by name', async () => {
    expect(await dovetail('user', 'create', 'zoe', '--tier', 'ultra')).toEqual({
      code: 0,
      stdout: '',
      stderr: `Created user 1, zoe, of the tier ultra. Next: DATA_DIR=${folder} npx dovetail token create --user zoe --name laptop\n`,
    });
    expect((await dovetail('token', 'create', '--user', 'zoe', '--name', 'laptop')).stdout).toMatch(/^dvt_/);
    const created = await dovetail('user', 'create', 'Bob Two', '--tier', 'free', '--json');
    expect(JSON.parse(created.stdout)).toEqual({ id: 2, username: 'Bob Two', tier: 'free' });
    expect(created.stderr).toContain(
      `Only ultra may have tokens: DATA_DIR=${folder} npx dovetail user tier 'Bob Two' ultra\n`,
    );
    expect((await dovetail('user', 'list')).stdout).toBe(
      'ID  TIER   TOKENS  NAME\n2   free   0       Bob Two\n1   ultra  1       zoe\n',
    );
    expect(await dovetail('user', 'tier', 'Bob Two', 'ultra')).toMatchObject({
      code: 0,
      stderr: 'Bob Two has the tier ultra now.\n',
    });
    const { stdout } = await dovetail('user', 'list', '--json');
    expect(JSON.parse(stdout)).toEqual([
      { id: 2, username: 'Bob Two', tier: 'ultra', tokens: 0 },
      { id: 1, username: 'zoe', tier: 'ultra', tokens: 1 },
    ]);
  });

  const blank = 'cannot be used: it takes visible characters, and no space at either end.';
  it.each([
    [1, ['user', 'create', 'ZOE'], 'There is already a user named "ZOE".'],
    [1, ['user', 'create', ' '], `The name " " ${blank}`],
    [1, ['user', 'create', 'a\u0007'], `The name "a\\u0007" ${blank}`],
    [1, ['user', 'create', 'amy', '--tier', ''], `The tier "" ${blank}`],
    [1, ['user', 'tier', 'nobody', 'ultra'], 'There is no user named "nobody".'],
    [2, ['user', 'create'], "error: missing required argument 'name'"],
    [
      1,
      ['demo'],
      'This database has users or records of its own, and the demo account wants one for itself: name another database in DATABASE_URL or DATA_DIR.',
    ],
    [
      1,
      ['demo', '--reset'],
      'This database has users or records of its own, and the demo account wants one for itself: name another database in DATABASE_URL or DATA_DIR.',
    ],
  ])('exits %i for %j, and says why', async (code, args, message) => {
    expect(await dovetail(...args)).toEqual({ code, stdout: '', stderr: `${message}\n` });
    expect(JSON.parse((await dovetail('user', 'list', '--json')).stdout)).toHaveLength(2);
  });

  it('leaves the accounts of a mirror alone', async () => {
    const database = await openDatabase({ DATABASE_URL: undefined, DATA_DIR: folder });
    onTestFinished(() => database.close());
    await database.pool.query(`INSERT INTO "Mirror" (source) VALUES ('https://example.com')`);
    // The database is open here, as it would be in a gateway.
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
});

describe('dovetail demo', () => {
  it('loads the demo account, prints its token, and loads it anew with all its tokens', async () => {
    const folder = await copyTemplate();
    const database = await openDatabase({ DATABASE_URL: undefined, DATA_DIR: folder });
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
    await database.pool.query(`DELETE FROM "DttSession"; UPDATE "User" SET "subscriptionTier" = 'free'`);
    expect(await demo('--reset')).toEqual({
      ...first,
      stderr: 'The demo account is as it was at first. Its token:\n',
    });
    expect(await database.sql.count('DttSession', {})).toBe(60);
    expect(await findToken(database.sql, token)).toMatchObject({ id: before?.id });

    await database.pool.query(`DELETE FROM "ApiToken"; UPDATE "User" SET "subscriptionTier" = 'free'`);
    expect(await demo()).toEqual({
      code: 1,
      stdout: '',
      stderr: `The demo account is there, but can have no new token: it has five already, or not the ultra tier any more. To see which: DATA_DIR=${folder} npx dovetail token list --user demo\n`,
    });
  });
});
