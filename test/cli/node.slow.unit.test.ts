/** What the command line tool says of a Node that is too old for it, and of a clone that is not built. */

import { spawnSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { isTooOld } from '../../src/cli/oldestNode.ts';

const clone = fileURLToPath(new URL('../..', import.meta.url));
const [command, program, script] = ['bin/dovetail.js', 'dist/cli/cli.js', '.ci/ready.mjs'];

/** Runs the tool in a Node that takes itself for another version. */
const runOn = (version: string, ...args: string[]) => run(version, join(clone, command), ...args);

/** Runs what every script of a clone begins with. */
const runScriptOn = (version: string) => run(version, join(clone, script));

function run(version: string, ...args: string[]) {
  const pretend = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } });`;
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', `data:text/javascript,${encodeURIComponent(pretend)}`, ...args],
    // A command may be typed in any folder.
    { encoding: 'utf8', cwd: tmpdir() },
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
  expect(isTooOld(version)).toBe(status === 1);
  expect(runScriptOn(version).status).toBe(status);
});

it('a Node that is no older than that runs the tool', () => {
  expect(runOn('22.12.0', '--version')).toMatchObject({ status: 0, stderr: '' });
});

it('the Node that it takes is that of the package', () => {
  // Which the scripts of a clone read, and the program cannot. In a package it is the only one to say so.
  const { stderr } = run('18.0.0', join(clone, program));
  expect(stderr).toMatch(/^Dovetail needs Node /);
  expect(stderr).toBe(runScriptOn('18.0.0').stderr);
});

it('every script looks first whether the packages are there', async () => {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8'));
  // These do nothing else, or are run by those that do.
  const others = ['packages', 'format', 'generate', 'codegen', 'test'];
  const reach = (name: string): string =>
    (scripts[`pre${name}`] ?? '') +
    scripts[name].replace(/^npm run --silent (\w+)/, (_: string, other: string) => reach(other));
  for (const name of Object.keys(scripts).filter((each) => !others.includes(each)))
    expect(reach(name), name).toMatch(/^(?:\[ ! -f \.ci\/ready\.mjs \] \|\| \{ )?node \.ci\/ready\.mjs && /);
  expect(runScriptOn(process.versions.node)).toEqual({ status: 0, stdout: '', stderr: '' });
});

const missing = 'Run npm ci first.\n';
const oldNode = 'Dovetail needs Node 20.19, 22.12, 24 or later, but this is Node 18.20.8.\n';
const cannotBuild =
  'The production packages alone cannot build. Run npm ci --include=dev, or bring dist from a clone that has built it.\n';
const notBuilt = 'Run npm run build first, or npm start, which builds as well.\n';

it.each<[string, string[], { command: string; script?: string; node?: string }]>([
  ['without packages', [], { command: missing, script: missing }],
  ['without packages that was built', [program], { command: missing, script: missing }],
  ['on a Node that is too old', [], { command: oldNode, script: oldNode, node: '18.20.8' }],
  [
    'with the production packages alone',
    ['node_modules/graphql'],
    { command: cannotBuild, script: cannotBuild },
  ],
  ['with all packages, not built', ['node_modules/graphql', 'node_modules/.bin/tsc'], { command: notBuilt }],
  ['with the production packages, built elsewhere', ['node_modules/graphql', program], { command: '' }],
])('a clone %s says in one line what to do, if there is anything', async (_, files, says) => {
  const fresh = await mkdtemp(join(tmpdir(), 'dovetail-clone-'));
  onTestFinished(() => rm(fresh, { recursive: true }));
  const place = async (file: string) => {
    await mkdir(dirname(join(fresh, file)), { recursive: true });
    return join(fresh, file);
  };
  for (const file of [command, script, 'package.json']) await copyFile(join(clone, file), await place(file));
  for (const file of files) await writeFile(await place(file), '');
  const exitOf = (line = '') => ({ status: line === '' ? 0 : 1, stdout: '', stderr: line });
  const { node } = { node: process.versions.node, ...says };
  expect(run(node, join(fresh, command), 'token', 'list')).toEqual(exitOf(says.command));
  expect(run(node, join(fresh, script))).toEqual(exitOf(says.script));
});

it('the command is there before anything is built, so that npm can link it', () => {
  const { bin, files } = JSON.parse(readFileSync('package.json', 'utf8'));
  expect(bin).toEqual({ dovetail: command });
  expect(files).toEqual(expect.arrayContaining([dirname(command), 'dist']));
  expect(statSync(join(clone, command)).mode & 0o111).toBe(0o111);
});

it('nothing but that number is loaded before the Node is known', () => {
  const importsOf = (file: string) =>
    [...readFileSync(join(clone, file), 'utf8').matchAll(/^\s*(?:import|export\b.*from)\s*[^(\s].*$/gm)].map(
      ([line]) => line.trim(),
    );
  expect(importsOf(command)).toEqual(["import { existsSync } from 'node:fs';"]);
  expect(importsOf(program)).toEqual(["import { isTooOld, oldestNode } from './oldestNode.js';"]);
  expect(importsOf('dist/cli/oldestNode.js')).toEqual([]);
});
