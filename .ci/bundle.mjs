/**
 * Puts the program and the packages that it starts with into few files, `dist/bundle`: Node takes half of a start to find
 * and open 1,200 of them. The modules beside it, as the compiler has written them, are what scripts and tests import.
 */

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'dist');
const bundle = join(dist, 'bundle');

/**
 * Packages that stay where they are, since they read files of their own or are loaded only where somebody asks for them.
 * They share no state with the others: a package that is in the bundle and is loaded from elsewhere as well is there twice.
 */
const apart = [
  '@electric-sql/pglite',
  '@graphql-yoga/render-graphiql',
  '@opentelemetry',
  '@prisma/client',
  'pg-native',
  'prom-client',
  'swagger-ui-dist',
];

/** A module looks for its files from where it was, and not from the bundle. */
const ownPlaces = {
  name: 'own-places',
  transform(code, id) {
    if (!id.startsWith(dist + sep) || !code.includes('import.meta.url')) return null;
    const place = JSON.stringify(relative(bundle, id).split(sep).join('/'));
    return code.replaceAll('import.meta.url', `new URL(${place}, import.meta.url).href`);
  },
};

const input = join(dist, 'cli/program.js');
const build = await rolldown({
  cwd: root,
  input,
  platform: 'node',
  external: (id) => apart.some((name) => id === name || id.startsWith(`${name}/`)),
  plugins: [ownPlaces],
  onLog(level, log) {
    if (level === 'warn') throw new Error(log.message);
  },
});
const { output } = await build.write({
  dir: bundle,
  cleanDir: true,
  entryFileNames: '[name].js',
  chunkFileNames: '[name].js',
});

/** The folder of a package that a module is from. */
const packageOf = (id) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id.split(sep).join('/'))?.[0];

const packages = new Set(output.flatMap(({ moduleIds = [] }) => moduleIds.map(packageOf)));
packages.delete(undefined);
const licences = [...packages].sort().map((folder) => {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  const text = file === undefined ? '' : readFileSync(join(folder, file), 'utf8').trim();
  return `${name} ${version} (${license})\n\n${text}`.trim();
});
writeFileSync(join(bundle, 'LICENSES.txt'), `${licences.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`);
