/**
 * Writes the package that is published into `dist/package`, or the folder that is named. `npm run package` makes a tarball of it. What
 * `vite build` has bundled no longer needs to be installed: this package.json names only the dependencies that are left, and
 * the licences and a list (SBOM) of the bundled packages stand beside it.
 */

import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

interface Bundled {
  readonly name: string;
  readonly version: string;
  /** The licence's SPDX identifier. */
  readonly identifier?: string;
  readonly text?: string;
}

interface Project {
  readonly name: string;
  readonly version: string;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

interface Lock {
  readonly lockfileVersion: number;
  readonly packages: Readonly<Record<string, { readonly version: string }>>;
}

/** As much of CycloneDX as is read here. */
interface Sbom {
  readonly metadata: {
    readonly component: {
      readonly name: string;
      readonly 'bom-ref': string;
      readonly properties: readonly object[];
    };
  };
  readonly components: readonly { readonly 'bom-ref': string }[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

/** The copyright lines of packages under the MIT License that come without its text, from their repositories. */
const copyrights: Readonly<Record<string, string>> = {
  '@graphiql/plugin-doc-explorer': '2021 GraphQL Contributors',
  '@graphiql/plugin-history': '2021 GraphQL Contributors',
  '@graphql-tools/executor': '2020 The Guild, Inc.',
  '@graphql-tools/utils': '2020 The Guild, Inc.',
  '@whatwg-node/disposablestack': '2023 Arda TANRIKULU',
  '@whatwg-node/fetch': '2023 Arda TANRIKULU',
  '@whatwg-node/node-fetch': '2023 Arda TANRIKULU',
  '@whatwg-node/promise-helpers': '2023 Arda TANRIKULU',
  '@whatwg-node/server': '2023 Arda TANRIKULU',
  'cross-inspect': '2020 The Guild, Inc.',
  'pg-types': '2014 Brian M. Carlson',
  pgpass: '2013-2016 Hannes Hörl',
  'react-compiler-runtime': 'Meta Platforms, Inc. and affiliates.',
  'react-remove-scroll-bar': '2025 Anton Korzunov <thekashey@gmail.com>',
  'toggle-selection': '2017 sudodoki <smd.deluzion@gmail.com>',
};

/** What the program reads, and what its README links to. The image is built without the documents. */
const contents = [
  ...['LICENSE', 'README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', 'docs'],
  ...['openapi.json', 'schema.graphql', 'bin', 'ops'],
  ...['prisma/migrations', 'prisma/schema.prisma', 'src/pages', 'src/rest'],
  ...readdirSync('dist')
    .filter((name) => name !== 'package' && name !== 'release')
    .map((name) => `dist/${name}`),
];

const folder = process.argv[2] ?? 'dist/package';
const project: Project = readJson('package.json');
const lock: Lock = readJson('package-lock.json');
const bundled = readBundled();
const installed = Object.entries(project.dependencies).filter(
  ([name]) => !bundled.some((other) => other.name === name),
);
const manifest = {
  ...pick(['name', 'version', 'description', 'keywords', 'license']),
  ...addresses(),
  ...pick(['type', 'engines', 'bin']),
  dependencies: Object.fromEntries(installed),
};

rmSync(folder, { recursive: true, force: true });
for (const path of contents.filter(existsSync))
  cpSync(path, join(folder, path), {
    recursive: true,
    filter: (file) => !/\.ts$|licenses\.json$/.test(file),
  });
writeJson('package.json', manifest);
writeJson('npm-shrinkwrap.json', shrinkwrap());
writeJson('sbom.cdx.json', sbom());
writeFileSync(join(folder, 'LICENSES.md'), licenses());

function readJson(path: string) {
  return JSON.parse(readFileSync(path, 'utf8'));
}

function writeJson(name: string, content: unknown): void {
  writeFileSync(join(folder, name), `${JSON.stringify(content, null, 2)}\n`);
}

/** The packages in any of the bundles, as Vite lists them. */
function readBundled(): Bundled[] {
  const lists = readdirSync('dist', { recursive: true, encoding: 'utf8' }).filter((name) =>
    /^\w+[/\\]licenses\.json$/.test(name),
  );
  const all: Bundled[] = lists.flatMap((name) => readJson(join('dist', name)));
  return [...new Map(all.map((one) => [idOf(one), one])).values()].sort((a, b) =>
    idOf(a) < idOf(b) ? -1 : 1,
  );
}

function idOf({ name, version }: { name: string; version: string }): string {
  return `${name}@${version}`;
}

function pick(names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(names.map((name) => [name, project[name]]));
}

/** Where the source is: known where a workflow of a repository packs it. */
function addresses(): Record<string, unknown> {
  const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: name } = process.env;
  if (!server || !name) return {};
  const url = `${server}/${name}`;
  return {
    repository: { type: 'git', url: `git+${url}.git` },
    bugs: { url: `${url}/issues` },
    homepage: `${url}#readme`,
  };
}

/** Has npm check what it installs against the hashes of package-lock.json. */
function shrinkwrap() {
  const { name, version } = project;
  const paths = installed.map(([dependency]) => `node_modules/${dependency}`);
  return {
    ...{ name, version, lockfileVersion: lock.lockfileVersion, requires: true },
    packages: { '': manifest, ...Object.fromEntries(paths.map((path) => [path, lock.packages[path]])) },
  };
}

/** npm's list of all packages, without those that are not in this one and not installed with it. */
function sbom(): Sbom {
  const args = ['sbom', '--sbom-format', 'cyclonedx', '--sbom-type', 'application', '--package-lock-only'];
  const list: Sbom = JSON.parse(execFileSync('npm', args, { encoding: 'utf8' }));
  const parts = new Set([...bundled, ...installed.map(([name, version]) => ({ name, version }))].map(idOf));
  const { component } = list.metadata;
  // Some versions of npm list a package again for each folder that it is in.
  const components = new Map(list.components.map((one) => [one['bom-ref'], one]));
  const dependencies = new Map(list.dependencies.map(({ ref, dependsOn }) => [ref, dependsOn]));
  return {
    ...list,
    // npm names it after its folder, and says that it is private, which the sources are.
    metadata: { ...list.metadata, component: { ...component, name: project.name, properties: [] } },
    components: [...components.values()].filter((one) => parts.has(one['bom-ref'])),
    dependencies: [...dependencies]
      .filter(([ref]) => parts.has(ref) || ref === component['bom-ref'])
      .map(([ref, dependsOn]) => ({ ref, dependsOn: dependsOn.filter((id) => parts.has(id)) })),
  };
}

function licenses(): string {
  const sections = bundled.map(
    (one) =>
      `## ${one.name} ${one.version}${one.identifier ? ` (${one.identifier})` : ''}\n\n${licenseOf(one)}\n`,
  );
  return `# Licences of the bundled packages\n\n${sections.join('\n')}`;
}

function licenseOf({ name, identifier, text }: Bundled): string {
  if (text) return text;
  const copyright = copyrights[name];
  if (identifier !== 'MIT' || !copyright) throw new Error(`${name} comes without the text of its licence`);
  // The license of the gateway is the same one.
  return readFileSync('LICENSE', 'utf8')
    .trim()
    .replace(/^Copyright .*$/m, `Copyright (c) ${copyright}`);
}
