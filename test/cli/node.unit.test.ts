/** What the command line tool says of a Node that is too old for it. */

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const entry = fileURLToPath(new URL('../../dist/cli/cli.js', import.meta.url));

/** Runs the tool in a Node that takes itself for another version. */
const runOn = (version: string, ...args: string[]) => run(version, process.cwd(), entry, ...args);

/** Runs what every script of a clone begins with. */
const runScriptOn = (version: string, clone = process.cwd()) =>
  run(version, clone, fileURLToPath(new URL('../../.ci/ready.mjs', import.meta.url)));

function run(version: string, cwd: string, ...args: string[]) {
  const pretend = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } });`;
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', `data:text/javascript,${encodeURIComponent(pretend)}`, ...args],
    { encoding: 'utf8', cwd },
  );
  return { status, stdout, stderr };
}

it.each([['serve'], ['token', 'list', '--user', 'demo'], ['sync'], ['doctor'], ['--version'], []])(
  'a Node that is too old is told which one it takes, whatever it was to do: %s',
  (...args) => {
    expect(runOn('18.20.8', ...args)).toEqual({
      status: 1,
      stdout: '',
      stderr: 'Dovetail needs Node 20.19, 22.12, 24 or later, but this is Node 18.20.8.\n',
    });
  },
);

it.each([
  ['9.11.2', 1],
  ['20.18.3', 1],
  ['20.19.0', 0],
  ['21.7.3', 1],
  ['22.0.0', 1],
  ['22.12.0', 0],
  ['23.11.1', 1],
  ['24.0.0', 0],
  ['25.0.0', 0],
  ['100.1.0', 0],
])('Node %s is judged by its number, and not by its letters', (version, status) => {
  expect(runOn(version, '--version').status).toBe(status);
  expect(runScriptOn(version).status).toBe(status);
});

it('the Node that it takes is that of the package', () => {
  // Which the scripts of a clone read, and the program cannot.
  expect(runOn('18.0.0').stderr).toBe(runScriptOn('18.0.0').stderr);
});

it('a clone without its packages is told to install them, by every script', async () => {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8'));
  // These do nothing else, or are run by those that do.
  const others = ['packages', 'format', 'generate', 'codegen', 'test'];
  const reach = (name: string): string =>
    (scripts[`pre${name}`] ?? '') +
    scripts[name].replace(/^npm run --silent (\w+)/, (_: string, other: string) => reach(other));
  for (const name of Object.keys(scripts).filter((each) => !others.includes(each)))
    expect(reach(name), name).toMatch(/^(?:\[ ! -f \.ci\/ready\.mjs \] \|\| \{ )?node \.ci\/ready\.mjs && /);
  const clone = await mkdtemp(join(tmpdir(), 'dovetail-clone-'));
  await copyFile('package.json', join(clone, 'package.json'));
  const { node } = process.versions;
  expect(runScriptOn(node, clone)).toEqual({ status: 1, stdout: '', stderr: 'Run npm ci first.\n' });
  expect(runScriptOn(node)).toEqual({ status: 0, stdout: '', stderr: '' });
  await rm(clone, { recursive: true });
});

it('nothing but that number is loaded before the Node is known', () => {
  const importsOf = (file: string) =>
    [...readFileSync(file, 'utf8').matchAll(/^\s*(?:import|export\b.*from)\s*[^(\s].*$/gm)].map(([line]) =>
      line.trim(),
    );
  expect(importsOf(entry)).toEqual(["import { isTooOld, oldestNode } from './oldestNode.js';"]);
  expect(importsOf(join(dirname(entry), 'oldestNode.js'))).toEqual([]);
});
