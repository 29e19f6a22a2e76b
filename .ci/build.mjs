/**
 * `npm run build`: makes `dist`, unless it is there and made of just these sources and packages. That is told by what the
 * files hold and not by their times, which a checkout or a copy sets as it likes, and in less time than npm takes to start.
 */

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));

/** What `dist` is made of. The last is what npm has installed, whatever it was told to. */
const inputs = [
  'src',
  'prisma',
  'console/src',
  'console/index.html',
  'console/vite.config.ts',
  'tsconfig.json',
  'tsconfig.build.json',
  'package.json',
  'package-lock.json',
  '.ci/build.mjs',
  '.ci/bundle.mjs',
  'node_modules/.package-lock.json',
];

/** The record of a build that came to its end: what went into it, and what came out. */
const record = 'dist/.built';

/** What the compiler knows of its last run. It does not look whether what it wrote then is there still. */
const memory = 'dist/.tsbuildinfo';

function filesIn(path) {
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found?.isDirectory()) return found ? [path] : [];
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

function digestOf(files, describe) {
  const digest = createHash('sha256');
  for (const file of files) digest.update(`${file}\0`).update(describe(file)).update('\0');
  return digest.digest('hex');
}

const digestOfInputs = () => digestOf(inputs.flatMap(filesIn), (file) => readFileSync(file));

const digestOfOutputs = () =>
  digestOf(
    filesIn('dist').filter((file) => file !== record),
    (file) => {
      const { size, mtimeMs } = statSync(file);
      return `${size} ${mtimeMs}`;
    },
  );

function readRecord() {
  try {
    return JSON.parse(readFileSync(record, 'utf8'));
  } catch {
    return {};
  }
}

function run(commands) {
  const env = { ...process.env, PATH: `${join(process.cwd(), 'node_modules/.bin')}:${process.env.PATH}` };
  execFileSync('sh', ['-ec', commands], { env, stdio: 'inherit' });
}

function build() {
  rmSync(record, { force: true });
  // It writes sources.
  run('npm run --silent generate');
  // Whatever is changed from here on makes another build of the next.
  const inputs = digestOfInputs();
  run(`
    tsc -p tsconfig.build.json
    cp src/rest/*.graphql src/rest/*.json dist/rest/
    cp -R src/graphql/examples dist/graphql/
    chmod +x dist/cli/cli.js
    node .ci/bundle.mjs
    vite build console --logLevel warn
    node prisma/pack.mjs`);
  writeFileSync(record, JSON.stringify({ inputs, outputs: digestOfOutputs() }));
}

const made = readRecord();
const isWhole = made.outputs === digestOfOutputs();
if (!isWhole) rmSync(memory, { force: true });
if (!isWhole || made.inputs !== digestOfInputs()) {
  try {
    build();
  } catch (error) {
    // The step has said what was wrong.
    process.exitCode = error.status || 1;
  }
}
