/** Imports run down the list of folders and never up. docs/architecture.md says what each folder is for. */

import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path/posix';
import { describe, expect, it } from 'vitest';

/** From the top to the bottom. Every folder may import the files in the root of `src`, and these import no folder. */
const folders = [
  'cli',
  'server',
  'mcp',
  'graphql',
  'pages',
  'rest',
  'proxy',
  'mirror',
  'upstream',
  'demo',
  'schema',
  'auth',
  'telemetry',
  'http',
  'database',
  'config',
  '.',
];

/** The TypeScript files below a folder, without generated ones. */
function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name.replaceAll('\\', '/')))
    .filter((file) => /\.tsx?$/.test(file) && !file.includes('/generated/') && statSync(file).isFile());
}

/** The files that a file imports by a relative path: at its start, when needed, or as a type. */
function importsOf(file: string): string[] {
  const text = readFileSync(file, 'utf8');
  return [...text.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*'(\.[^']*)'/g)].map(([, path = '']) =>
    join(file, '..', path),
  );
}

/** The folder directly below `root` that has the file; `.` for a file of the root itself. */
function folderOf(root: string, file: string): string {
  const [first = '', ...rest] = file.slice(root.length + 1).split('/');
  return rest.length === 0 ? '.' : first;
}

it('the list of folders is complete', () => {
  expect(new Set(filesIn('src').map((file) => folderOf('src', file)))).toEqual(new Set(folders));
});

it.each(filesIn('src'))('%s imports nothing that stands above it', (file) => {
  const rank = (path: string) => folders.indexOf(folderOf('src', path));
  expect(importsOf(file).filter((target) => rank(target) < rank(file))).toEqual([]);
});

it.each(['mcp', 'schema/federation', 'database/client.ts'])(
  'src/%s is loaded when it is needed, and not before',
  (room) => {
    const inRoom = (file: string) => file === `src/${room}` || file.startsWith(`src/${room}/`);
    // Imports of types load nothing.
    const atStart = /^(?:im|ex)port (?!type\b)[^;]*?from '(\.[^']*)'/gm;
    const loading = filesIn('src').filter((file) =>
      [...readFileSync(file, 'utf8').matchAll(atStart)].some(([, path = '']) =>
        inRoom(join(file, '..', path)),
      ),
    );
    expect(loading.filter((file) => !inRoom(file))).toEqual([]);
  },
);

describe('the console', () => {
  const root = 'console/src';
  /** What all views may use. A view does not use another. */
  const shared = ['api', 'parts', '.'];

  it.each(filesIn(root))('%s imports its own folder, shared ones, and generated types', (file) => {
    const from = folderOf(root, file);
    const isAllowed = (target: string) =>
      target.startsWith('console/generated/') ||
      (target.startsWith(`${root}/`) && (from === '.' || [from, ...shared].includes(folderOf(root, target))));
    expect(importsOf(file).filter((target) => !isAllowed(target))).toEqual([]);
  });
});
