/** Imports run down the list of folders and never up. docs/architecture.md says what each folder is for. */

import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path/posix';
import { describe, expect, it } from 'vitest';

/**
 * The core, from the top to the bottom. Every folder may import the files in the root of `src`, and these import no folder, except that
 * the points of extensions name types of all folders below `server`.
 */
const folders = [
  'cli',
  'server',
  'extensionPoints',
  'graphql',
  'pages',
  'rest',
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
  if (file === 'src/extensionPoints.ts') return 'extensionPoints';
  return rest.length === 0 ? '.' : first;
}

const isOfExtension = (file: string) => file.startsWith('src/extensions/');
const core = filesIn('src').filter((file) => !isOfExtension(file));

it('the list of folders is complete', () => {
  expect(new Set(core.map((file) => folderOf('src', file)))).toEqual(new Set(folders));
});

const list = 'src/extensions/extensions.ts';

it.each(core)('%s imports nothing that stands above it, and no extension', (file) => {
  const rank = (path: string) => folders.indexOf(folderOf('src', path));
  const isAllowed = (target: string) =>
    isOfExtension(target)
      ? target === list && ['cli', 'server'].includes(folderOf('src', file))
      : rank(target) >= rank(file);
  expect(importsOf(file).filter((target) => !isAllowed(target))).toEqual([]);
});

it.each(filesIn('src/extensions').filter((file) => file !== list))(
  '%s imports its own extension and the core',
  (file) => {
    const own = `src/extensions/${folderOf('src/extensions', file)}/`;
    expect(importsOf(file).filter((target) => isOfExtension(target) && !target.startsWith(own))).toEqual([]);
  },
);

it('the list of extensions imports the main file of each alone, which loads the other files when they are needed', () => {
  const main = /^src\/extensions\/(\w+)\/extension\.ts$/;
  expect(
    importsOf(list).filter((target) => target !== 'src/extensionPoints.ts' && !main.test(target)),
  ).toEqual([]);
  // Imports of types load nothing.
  const atStart = /^(?:im|ex)port (?!type\b)[^;]*?from '([^.'][^']*)'/gm;
  const packages = filesIn('src/extensions')
    .filter((file) => main.test(file))
    .flatMap((file) => [...readFileSync(file, 'utf8').matchAll(atStart)].map(([, name = '']) => name));
  expect(
    packages.filter((name) => !name.startsWith('node:') && !['zod', 'commander'].includes(name)),
  ).toEqual([]);
});

it("Prisma's client is loaded when it is needed, and not before", () => {
  // Imports of types load nothing.
  const atStart = /^(?:im|ex)port (?!type\b)[^;]*?from '[^']*\/client\.ts'/gm;
  const loading = filesIn('src/database').filter((file) => atStart.test(readFileSync(file, 'utf8')));
  expect(loading).toEqual(['src/database/client.ts']);
});

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
