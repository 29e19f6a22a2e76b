/**
 * Shows that each extension can be taken away: in a copy of the project it removes its folder, that of its tests and its lines in the
 * list, and nothing else, and checks the types. With all of them removed it also builds, starts a gateway with the embedded database, and
 * runs the tests of the core on PostgreSQL: no extension matters to one engine alone.
 * One copy serves for all: what was removed is put back, and the compiler checks again only what depends on it.
 * `--types` leaves out the last part; names check these extensions alone.
 */

import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { types: { type: 'boolean', default: false } },
});

const list = 'src/extensions/extensions.ts';

/** The folders of all extensions. */
const all = readdirSync('src/extensions', { withFileTypes: true }).flatMap((entry) =>
  entry.isDirectory() ? [entry.name] : [],
);

/**
 * The tests of the core. Those of the documents, of the files for operators and of the package name extensions or their packages,
 * which are there for users.
 */
const others = ['docs', 'ops', 'extensions', 'bench', 'large', 'package.slow.unit.test.ts'];
const testsOfCore = readdirSync('test')
  .filter((name) => !others.includes(name))
  .map((name) => `test/${name}`);

/** The files of git, and those that are generated or installed. The copy has links to the latter. */
function copyProject(): string {
  const folder = mkdtempSync(join(tmpdir(), 'dovetail-extensions-'));
  const files = execFileSync('git', ['ls-files', '-z'], { encoding: 'utf8' }).split('\0').filter(Boolean);
  for (const file of files) cpSync(file, join(folder, file), { recursive: true });
  const generated = ['src/database/generated', 'console/generated', 'test/generatedClients/generated'];
  for (const name of generated) cpSync(name, join(folder, name), { recursive: true });
  symlinkSync(join(process.cwd(), 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

/** Removes an extension from a copy. */
function remove(folder: string, name: string): void {
  for (const room of ['src', 'test'])
    rmSync(join(folder, room, 'extensions', name), { recursive: true, force: true });
  const file = join(folder, list);
  const text = readFileSync(file, 'utf8')
    .replace(new RegExp(`^import .*'\\./${name}/.*;\\n`, 'm'), '')
    .replace(new RegExp(`(?<=[\\[ ])${name},? ?(?=[^=]*\\];)`), '');
  writeFileSync(file, text);
}

/** Runs a command in a copy. @returns whether it succeeded. */
function run(folder: string, command: string, ...given: string[]): boolean {
  const { status } = spawnSync(command, given, { cwd: folder, stdio: ['ignore', 'inherit', 'inherit'] });
  return status === 0;
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** What a check changes in the copy, and how it was before. The compiler's notes let it check only what depends on the change. */
const changed = ['src/extensions', 'test/extensions', 'tsconfig.tsbuildinfo'];

function restore(folder: string, before: string): void {
  for (const name of changed) {
    rmSync(join(folder, name), { recursive: true, force: true });
    cpSync(join(before, name), join(folder, name), { recursive: true });
  }
}

const checkTypes = (folder: string) => run(folder, 'npm', 'run', '--silent', 'types');

/** @returns whether the core without any extension builds, starts, and passes its tests. */
function checkCore(folder: string): boolean {
  const start = `DATA_DIR=data PORT=0 timeout 20 node bin/dovetail.js serve > started &
    until grep 'Dovetail is running' started; do kill -0 $! && sleep 0.2 || exit 1; done
    kill $!; wait $!`;
  return (
    run(folder, 'npm', 'run', '--silent', 'build') &&
    run(folder, 'sh', '-c', start) &&
    run(folder, 'npx', 'vitest', 'run', '--project', 'postgres', ...testsOfCore)
  );
}

const wanted = positionals.length > 0 ? positionals : all;
const isWhole = !values.types && positionals.length === 0;
const rounds = [
  ...wanted.map((name) => ({ title: name, names: [name] })),
  ...(isWhole ? [{ title: 'all of them', names: all }] : []),
];
const folder = copyProject();
const before = mkdtempSync(join(tmpdir(), 'dovetail-extensions-before-'));
process.on('exit', () => {
  for (const name of [folder, before]) rmSync(name, { recursive: true, force: true });
});

if (!checkTypes(folder)) process.exit(1);
for (const name of changed) cpSync(join(folder, name), join(before, name), { recursive: true });
for (const { title, names } of rounds) {
  say(`without ${title}`);
  for (const name of names) remove(folder, name);
  if (!checkTypes(folder) || (names === all && !checkCore(folder))) {
    say(`The core, or another extension, needs ${title}.`);
    process.exit(1);
  }
  restore(folder, before);
}
