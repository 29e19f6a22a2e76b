/** The package that is published: what `package.ts` makes of a build. */

import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { pages, proseOf, readPage } from './docs/markdown.ts';
import { newFolder } from './support/newFolder.ts';

interface Bundled {
  readonly name: string;
  readonly version: string;
}

const readJson = (path: string) => JSON.parse(readFileSync(path, 'utf8'));
const bundled = (bundle: string): Bundled[] => readJson(`dist/${bundle}/licenses.json`);
const all = ['gateway', 'console', 'explorer', 'reading'].flatMap(bundled);
const idOf = ({ name, version }: Bundled) => `${name}@${version}`;
const idsOf = (packages: readonly Bundled[]) => [...new Set(packages.map(idOf))].sort();

describe('the package', () => {
  const folder = newFolder();
  const packed = (name: string) => join(folder, name);

  beforeAll(() => {
    const repository = { GITHUB_SERVER_URL: 'https://forge.example', GITHUB_REPOSITORY: 'someone/dovetail' };
    const env = { ...process.env, ...repository };
    execFileSync(process.execPath, ['--import', 'tsx', 'package.ts', folder], { env, stdio: 'pipe' });
  });

  it('needs nothing but the embedded engine, runs no script, and may be published', () => {
    const { name, version, bin, engines } = readJson('package.json');
    const manifest = readJson(packed('package.json'));
    expect(manifest).toMatchObject({ name, version, bin, engines });
    expect(Object.keys(manifest.dependencies)).toEqual(['@electric-sql/pglite']);
    for (const field of ['scripts', 'devDependencies', 'private']) expect(manifest).not.toHaveProperty(field);
    const { packages } = readJson(packed('npm-shrinkwrap.json'));
    expect(Object.keys(packages)).toEqual(['', 'node_modules/@electric-sql/pglite']);
  });

  it('names the repository whose workflow packs it, without which no provenance is accepted', () => {
    expect(readJson(packed('package.json'))).toMatchObject({
      repository: { type: 'git', url: 'git+https://forge.example/someone/dovetail.git' },
      bugs: { url: 'https://forge.example/someone/dovetail/issues' },
      homepage: 'https://forge.example/someone/dovetail#readme',
    });
  });

  it('has the text of the licence of each bundled package, also in the console and GraphiQL', () => {
    const sections = readFileSync(packed('LICENSES.md'), 'utf8').split(/^## (?=\S+ \d+\.\d+\.\d)/m);
    const parts = sections.slice(1).map((section) => /^(\S+) (\S+)[^\n]*\n(.*)/s.exec(section) ?? []);
    expect(parts.map(([, name, version]) => `${name}@${version}`).sort()).toEqual(idsOf(all));
    for (const [, , , text] of parts) expect(text).toMatch(/copyright|permission|licen[sc]e/i);
    const names = all.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['preact', '@urql/core', 'wonka', 'uplot', 'graphiql']));
  });

  it('lists in CycloneDX exactly what is bundled and what is installed with it', () => {
    const { bomFormat, metadata, components } = readJson(packed('sbom.cdx.json'));
    const { dependencies } = readJson(packed('package.json'));
    const installed = Object.entries<string>(dependencies).map(([name, version]) => ({ name, version }));
    expect(bomFormat).toBe('CycloneDX');
    expect(metadata.component).toMatchObject({ type: 'application', name: 'dovetail-gateway' });
    const ids = components.map((component: Bundled) => idOf(component));
    expect(ids.sort()).toEqual(idsOf([...all, ...installed]));
  });

  it('has every file that its README links to, and the files of ops that its pages link to', () => {
    const links = [...proseOf(readPage('README.md')).matchAll(/\]\((?!https?:)([^)#\s]+)/g)];
    expect(links.length).toBeGreaterThan(20);
    const examples = pages.flatMap((page) => [...readPage(page).matchAll(/\]\(\.\.\/(ops\/[^)#\s]+)/g)]);
    expect(examples.length).toBeGreaterThan(5);
    const paths = [...links, ...examples].map(([, path = '']) => path);
    expect(paths.filter((path) => !existsSync(packed(path)))).toEqual([]);
  });
});

it('package.json has what runs under `dependencies`, and nothing else', () => {
  const { packages } = readJson('package-lock.json');
  const locked = Object.entries<{ version: string; dev?: boolean }>(packages).filter(([, { dev }]) => !dev);
  const running = locked.map(([path, { version }]) => `${path.split('node_modules/').at(-1)}@${version}`);
  expect(running).toEqual(expect.arrayContaining(idsOf(all)));
  const names = new Set(all.map(({ name }) => name));
  const notBundled = Object.keys(readJson('package.json').dependencies).filter((name) => !names.has(name));
  expect(notBundled).toEqual(['@electric-sql/pglite']);
});

it('the README says what each of its main packages does', () => {
  const { dependencies, devDependencies } = readJson('package.json');
  const rows = readPage('README.md')
    .split('\n')
    .filter((line) => line.startsWith('| `'));
  const named = rows.flatMap((row) => [...(row.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)]);
  const known = named.filter(([, name = '']) => name in dependencies || name in devDependencies);
  expect(named.length).toBe(8);
  expect(known).toEqual(named);
});

it('the sources cannot be packed or published as they are', () => {
  expect(readJson('package.json').private).toBe(true);
  const { status, stderr } = spawnSync('npm', ['pack'], { encoding: 'utf8' });
  expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining('npm run package') });
});
