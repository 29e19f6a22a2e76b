/** The messages of the command line tool on a version of Node that is too old, and in a clone that is not built. */

import { spawnSync } from 'node:child_process';
import { cp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { newFolder } from '../support/newFolder.ts';

const command = 'bin/dovetail.js';

/** Runs the tool in a Node with a faked version. */
function runOn(version: string, file = resolve(command)) {
  const pretend = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } });`;
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', `data:text/javascript,${encodeURIComponent(pretend)}`, file, '--version'],
    // A command may be run in any folder.
    { encoding: 'utf8', cwd: tmpdir() },
  );
  return { status, stdout, stderr };
}

it.each(['18.20.8', '20.18.3', '21.7.3', '22.12.0', '23.11.1'])(
  'on Node %s, which is too old, the tool names the versions that it needs',
  (version) => {
    const stderr = `Dovetail needs Node 20.19, 22.13, 24 or later, but this is Node ${version}.\n`;
    expect(runOn(version)).toEqual({ status: 1, stdout: '', stderr });
  },
);

it.each(['20.19.0', '22.13.0', '24.0.0', '100.1.0'])('the tool runs on Node %s', (version) => {
  expect(runOn(version)).toMatchObject({ status: 0, stderr: '' });
});

it('a clone that is not built prints one line with what to do', async () => {
  const clone = newFolder();
  for (const name of [command, 'package.json']) await cp(name, join(clone, name), { recursive: true });
  const stderr = 'Dovetail is not built yet: run npm ci, which installs the packages and builds it.\n';
  expect(runOn(process.versions.node, join(clone, command))).toEqual({ status: 1, stdout: '', stderr });
});
