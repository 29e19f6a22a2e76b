/** The check of `schema.graphql` for breaking changes, run in temporary repositories. */

import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { newFolder } from '../support/newFolder.ts';

/** Named by its path, since the check runs in another folder. */
const tsx = import.meta.resolve('tsx');

function run(folder: string, command: string, ...args: string[]): Promise<{ code: number; stdout: string }> {
  return new Promise((settle) => {
    const child = execFile(command, args, { cwd: folder }, (_, stdout) =>
      settle({ code: child.exitCode ?? -1, stdout }),
    );
  });
}

const schema = await readFile('schema.graphql', 'utf8');
const author = ['-c', 'user.name=test', '-c', 'user.email=test@example.com', '-c', 'commit.gpgsign=false'];

/** What the check says about a schema that is written after the first commit, and committed if there is a message. */
async function check(text: string, message?: string) {
  const folder = newFolder();
  const write = (content: string) => writeFile(join(folder, 'schema.graphql'), content);
  const commit = async (...message: string[]) => {
    await run(folder, 'git', 'add', '.');
    const { code } = await run(
      folder,
      'git',
      ...author,
      'commit',
      '--quiet',
      '--allow-empty',
      '-m',
      ...message,
    );
    expect(code).toBe(0);
  };
  await write(schema);
  await run(folder, 'git', 'init', '--quiet');
  await commit('Begin');
  if (message === undefined) await commit('Go on');
  await write(text);
  if (message !== undefined) await commit(message);
  return run(folder, process.execPath, '--import', tsx, resolve('.ci/schema.ts'));
}

it('fails and names each breaking change, unless a commit message allows it, and takes a type that is added', async () => {
  const broken = schema
    .replace('  serialNumber: String\n', '  serial: String\n')
    .replace('username: String!', 'username: String');
  const breaking = [
    'DttDevice.serialNumber was removed.',
    'User.username changed type from String! to String.',
  ];
  const trailers = breaking.map((description) => `Breaking-Change: ${description}`);
  const [added, refused, allowed] = await Promise.all([
    check(`${schema}\ntype Added { id: ID! }\n`),
    check(broken),
    check(broken, ['Break things', '', ...trailers].join('\n')),
  ]);
  expect(added).toMatchObject({ code: 0, stdout: expect.stringContaining('No breaking changes') });
  expect(refused).toMatchObject({ code: 1, stdout: expect.stringContaining('2 breaking changes') });
  expect(refused.stdout.match(/(?<=breaking: ).*/g)).toEqual(breaking);
  expect(allowed).toMatchObject({ code: 0, stdout: expect.stringContaining('breaking, allowed: ') });
});
