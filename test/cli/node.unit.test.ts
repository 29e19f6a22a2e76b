/** What the command line tool says of a Node that is too old for it. */

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const entry = fileURLToPath(new URL('../../dist/cli/cli.js', import.meta.url));

/** Runs the tool in a Node that takes itself for another version, and tells what it has loaded. */
function runOn(version: string, ...args: string[]) {
  const pretend = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } });`;
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', `data:text/javascript,${encodeURIComponent(pretend)}`, entry, ...args],
    { encoding: 'utf8' },
  );
  return { status, stdout, stderr };
}

it.each([['serve'], ['token', 'list', '--user', 'demo'], ['sync'], ['doctor'], ['--version'], []])(
  'a Node that is too old is told which one it takes, whatever it was to do: %s',
  (...args) => {
    expect(runOn('18.20.8', ...args)).toEqual({
      status: 1,
      stdout: '',
      stderr: 'Dovetail needs Node 20.19 or later, but this is Node 18.20.8.\n',
    });
  },
);

it.each([
  ['9.11.2', 1],
  ['20.18.3', 1],
  ['20.19.0', 0],
  ['22.0.0', 0],
  ['100.1.0', 0],
])('Node %s is judged by its number, and not by its letters', (version, status) => {
  expect(runOn(version, '--version').status).toBe(status);
});

it('the Node that it takes is that of the package', () => {
  const { engines } = JSON.parse(readFileSync('package.json', 'utf8'));
  expect(runOn('18.0.0').stderr).toContain(`Node ${engines.node.replace('>=', '')} or later`);
});

it('nothing but that number is loaded before the Node is known', () => {
  const importsOf = (file: string) =>
    [...readFileSync(file, 'utf8').matchAll(/^\s*(?:import|export\b.*from)\s*[^(\s].*$/gm)].map(([line]) =>
      line.trim(),
    );
  expect(importsOf(entry)).toEqual(["import { isTooOld, oldestNode } from './oldestNode.js';"]);
  expect(importsOf(join(dirname(entry), 'oldestNode.js'))).toEqual([]);
});
