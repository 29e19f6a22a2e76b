/** The messages of the command line tool on a version of Node that is too old, and in a clone that is not built. */

import { spawnSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';

const command = 'bin/dovetail.js';

/** Runs the tool in a Node with a faked version. */
function runOn(version: string, file: string, ...args: string[]) {
  const pretend = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } });`;
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', `data:text/javascript,${encodeURIComponent(pretend)}`, file, ...args],
    // A command may be run in any folder.
    { encoding: 'utf8', cwd: tmpdir() },
  );
  return { status, stdout, stderr };
}

it.each(['9.11.2', '18.20.8', '20.18.3', '21.7.3', '22.0.0', '22.11.9', '23.11.1'])(
  'on Node %s, which is too old, the tool names the versions that it needs',
  (version) => {
    expect(runOn(version, resolve(command), 'token', 'list', '--user', 'demo')).toEqual({
      status: 1,
      stdout: '',
      stderr: `Dovetail needs Node 20.19, 22.12, 24 or later, but this is Node ${version}.\n`,
    });
  },
);

it.each(['20.19.0', '22.12.0', '24.0.0', '25.0.0', '100.1.0'])('the tool runs on Node %s', (version) => {
  expect(runOn(version, resolve(command), '--version')).toMatchObject({ status: 0, stderr: '' });
});

it('the tool needs the versions of Node that package.json names', () => {
  const { engines } = JSON.parse(readFileSync('package.json', 'utf8'));
  expect(engines.node).toBe('^20.19 || ^22.12 || >=24');
});

it('a clone that is not built prints one line with what to do', async () => {
  const clone = await mkdtemp(join(tmpdir(), 'dovetail-clone-'));
  onTestFinished(() => rm(clone, { recursive: true }));
  await mkdir(join(clone, 'bin'));
  await copyFile(command, join(clone, command));
  await copyFile('package.json', join(clone, 'package.json'));
  expect(runOn(process.versions.node, join(clone, command), 'serve')).toEqual({
    status: 1,
    stdout: '',
    stderr: 'Dovetail is not built yet: run npm ci, which installs the packages and builds it.\n',
  });
});

it('the file of the command exists before the build, so that npm can link it', () => {
  const { bin, files } = JSON.parse(readFileSync('package.json', 'utf8'));
  expect(bin).toEqual({ dovetail: command });
  expect(files).toEqual(expect.arrayContaining(['bin', 'dist']));
  expect(statSync(command).mode & 0o111).toBe(0o111);
});
