/** The check of `schema.graphql` for breaking changes, run in a temporary repository. */

import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';

/** Named by its path, since the check runs in another folder. */
const tsx = import.meta.resolve('tsx');

let folder: string;
let schema: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dovetail-schema-'));
  schema = await readFile('schema.graphql', 'utf8');
  await run('git', 'init', '--quiet');
  await commit(schema, 'Begin');
  await commit(schema, 'Go on');
});
afterEach(() => rm(folder, { recursive: true, force: true }));

function run(command: string, ...args: string[]): Promise<{ code: number; stdout: string }> {
  return new Promise((settle) => {
    const child = execFile(command, args, { cwd: folder }, (_, stdout) =>
      settle({ code: child.exitCode ?? -1, stdout }),
    );
  });
}

async function commit(text: string, message: string): Promise<void> {
  await writeFile(join(folder, 'schema.graphql'), text);
  await run('git', 'add', '.');
  const author = ['-c', 'user.name=test', '-c', 'user.email=test@example.com', '-c', 'commit.gpgsign=false'];
  const { code } = await run('git', ...author, 'commit', '--quiet', '--allow-empty', '--message', message);
  expect(code).toBe(0);
}

const check = (...args: string[]) =>
  run(process.execPath, '--import', tsx, resolve('.ci/schema.ts'), ...args);

it('reports no breaking changes when a type is added', async () => {
  await writeFile(join(folder, 'schema.graphql'), `${schema}\ntype Added { id: ID! }\n`);
  expect(await check()).toMatchObject({ code: 0, stdout: expect.stringContaining('No breaking changes') });
});

it('fails and names each breaking change, unless a commit message allows it', async () => {
  const broken = schema
    .replace('  serialNumber: String\n', '  serial: String\n')
    .replace('username: String!', 'username: String');
  await writeFile(join(folder, 'schema.graphql'), broken);
  const found = await check();
  expect(found).toMatchObject({ code: 1, stdout: expect.stringContaining('2 breaking changes') });
  const descriptions = found.stdout.match(/(?<=breaking: ).*/g) ?? [];
  expect(descriptions).toEqual([
    'DttDevice.serialNumber was removed.',
    'User.username changed type from String! to String.',
  ]);

  const trailers = descriptions.map((description) => `Breaking-Change: ${description}`);
  await commit(broken, ['Break things', '', ...trailers].join('\n'));
  expect(await check()).toMatchObject({ code: 0, stdout: expect.stringContaining('breaking, allowed: ') });
});
