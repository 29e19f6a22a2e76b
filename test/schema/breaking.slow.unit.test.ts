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

/**
 * What the check says about a schema that is written after the first commit, and committed if there is a message.
 * @param options.release whether the first commit was released, in the version that the package still has.
 */
async function check(text: string, message?: string, { before = schema, release = false } = {}) {
  const folder = newFolder();
  const write = (content: string) => writeFile(join(folder, 'schema.graphql'), content);
  const commit = async (...message: string[]) => {
    await run(folder, 'git', 'add', '.');
    const committed = await run(folder, 'git', ...author, 'commit', '--allow-empty', '-m', ...message);
    expect(committed.code).toBe(0);
  };
  await write(before);
  await writeFile(join(folder, 'package.json'), '{"version":"1.2.0"}');
  await run(folder, 'git', 'init', '--quiet');
  await commit('Begin');
  if (release) await run(folder, 'git', 'tag', 'v1.0.0');
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

it('takes the removal of what was deprecated, from the day on that its reason names, and wants a day there', async () => {
  const deprecated = (reason: string) =>
    schema.replace('  serialNumber: String\n', `  serialNumber: String @deprecated(reason: "${reason}")\n`);
  const removed = schema.replace('  """Serial number."""\n  serialNumber: String\n', '');
  expect(removed).not.toBe(schema);
  const [over, early, endless] = await Promise.all([
    check(removed, undefined, { before: deprecated('Use another. May go on 2020-01-01.') }),
    check(removed, undefined, { before: deprecated('Use another. May go on 2999-01-01.') }),
    check(deprecated('Use another.')),
  ]);
  expect(over.code).toBe(0);
  expect(early).toMatchObject({ code: 1, stdout: expect.stringContaining('serialNumber was removed') });
  expect(endless).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('serialNumber is deprecated without a day'),
  });
});

it('allows nothing by a message within a major version that is released', async () => {
  const broken = schema.replace('username: String!', 'username: String');
  const message = 'Break things\n\nBreaking-Change: User.username changed type from String! to String.';
  expect((await check(broken, message, { release: true })).code).toBe(1);
});
