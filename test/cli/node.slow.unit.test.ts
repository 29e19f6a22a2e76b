/** The messages of the command line tool on a version of Node that is too old, and in a clone that is not built. */

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

/** Runs the tool in a Node with a faked version. */
const runOn = (version: string, ...args: string[]) => run(version, join(clone, command), ...args);

/** Runs the check that every script of a clone begins with. */
const runScriptOn = (version: string) => run(version, join(clone, script));

function run(version: string, ...args: string[]) {
  const pretend = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } });`;
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', `data:text/javascript,${encodeURIComponent(pretend)}`, ...args],
    // A command may be run in any folder.
    { encoding: 'utf8', cwd: tmpdir() },
  );
  return { status, stdout, stderr };
}

it.each([
  [['serve']],
  [['token', 'list', '--user', 'demo']],
  [['sync']],
  [['doctor']],
  [['--version']],
  [[]],
])(
  'on a version of Node that is too old, the tool names the versions that it needs, whatever its arguments are: %j',
  (args) => {
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
])('the version %s of Node is compared as numbers, and not as text', (version, status) => {
  expect(isTooOld(version)).toBe(status === 1);
  expect(runScriptOn(version).status).toBe(status);
});

it('the tool runs on a version of Node that is recent enough', () => {
  expect(runOn('22.12.0', '--version')).toMatchObject({ status: 0, stderr: '' });
});

it('the program and the scripts of a clone need the same version of Node', () => {
  // The scripts of a clone read it from package.json, which the program cannot do; an installed package has only the program.
  const { stderr } = run('18.0.0', join(clone, program));
  expect(stderr).toMatch(/^Dovetail needs Node /);
  expect(stderr).toBe(runScriptOn('18.0.0').stderr);
});

it('every script first checks that the packages are installed', async () => {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8'));
  // These scripts need no check, or are run by scripts that have it.
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
  ['on a version of Node that is too old', [], { command: oldNode, script: oldNode, node: '18.20.8' }],
  [
    'with only the production packages',
    ['node_modules/graphql'],
    { command: cannotBuild, script: cannotBuild },
  ],
  ['with all packages, not built', ['node_modules/graphql', 'node_modules/.bin/tsc'], { command: notBuilt }],
  ['with the production packages, built elsewhere', ['node_modules/graphql', program], { command: '' }],
])('a clone %s prints one line with what to do, or nothing', async (_, files, expected) => {
  const fresh = await mkdtemp(join(tmpdir(), 'dovetail-clone-'));
  onTestFinished(() => rm(fresh, { recursive: true }));
  const place = async (file: string) => {
    await mkdir(dirname(join(fresh, file)), { recursive: true });
    return join(fresh, file);
  };
  for (const file of [command, script, 'package.json']) await copyFile(join(clone, file), await place(file));
  for (const file of files) await writeFile(await place(file), '');
  const exitOf = (line = '') => ({ status: line === '' ? 0 : 1, stdout: '', stderr: line });
  const { node } = { node: process.versions.node, ...expected };
  expect(run(node, join(fresh, command), 'token', 'list')).toEqual(exitOf(expected.command));
  expect(run(node, join(fresh, script))).toEqual(exitOf(expected.script));
});

it('the file of the command exists before the build, so that npm can link it', () => {
  const { bin, files } = JSON.parse(readFileSync('package.json', 'utf8'));
  expect(bin).toEqual({ dovetail: command });
  expect(files).toEqual(expect.arrayContaining([dirname(command), 'dist']));
  expect(statSync(join(clone, command)).mode & 0o111).toBe(0o111);
});

it('only the oldest supported version is loaded before the version of Node is checked', () => {
  const importsOf = (file: string) =>
    [...readFileSync(join(clone, file), 'utf8').matchAll(/^\s*(?:import|export\b.*from)\s*[^(\s].*$/gm)].map(
      ([line]) => line.trim(),
    );
  expect(importsOf(command)).toEqual(["import { existsSync } from 'node:fs';"]);
  expect(importsOf(program)).toEqual(["import { isTooOld, oldestNode } from './oldestNode.js';"]);
  expect(importsOf('dist/cli/oldestNode.js')).toEqual([]);
});
