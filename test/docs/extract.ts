/**
 * Writes the programs of docs/clients.md into a folder as they are printed, with the schema of this commit beside them, and
 * generates the types that they import with the commands of the page.
 *
 *     tsx test/docs/extract.ts <folder> <project>…
 *
 * With `frontends` the project `app` also has the files that run in a browser, whose packages only `test/large` has.
 */

import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const [output = '', ...parameters] = process.argv.slice(2);
const hasFrontends = parameters.includes('frontends');
const wanted = parameters.filter((parameter) => parameter !== 'frontends');

const ofFrontends = ['React', 'urql', 'Apollo Client', 'Relay', 'Subscriptions'];

/** The command of the page that generates the types of a project. */
const generators = new Map([
  ['app', ['graphql-codegen']],
  ['tada', ['gql.tada', 'generate-output']],
]);

rmSync(output, { recursive: true, force: true });
for (const section of readFileSync('docs/clients.md', 'utf8').split(/^## /m)) {
  const [heading = ''] = section.split('\n', 1);
  if (ofFrontends.includes(heading) && !hasFrontends) continue;
  const project = heading === 'gql.tada' ? 'tada' : 'app';
  if (wanted.includes(project)) writeFiles(section, join(output, project));
}
for (const project of wanted) {
  const [command, ...options] = generators.get(project) ?? [];
  if (command) run(command, options, join(output, project));
}

/** Writes each block of the section that begins with the name of a file in a comment, or comes after a line that ends with one. */
function writeFiles(section: string, folder: string): void {
  mkdirSync(folder, { recursive: true });
  copyFileSync('schema.graphql', join(folder, 'schema.graphql'));
  for (const [, before, text = ''] of section.matchAll(/(?:file `(\S+)`:\n\n|^)```\w+\n(.*?)^```$/gms)) {
    const name = before ?? /^(?:\/\/|<!--) (\S+\.\w+)/.exec(text)?.[1];
    if (name === undefined) continue;
    const file = join(folder, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}

/** Runs a command of the packages, and shows its output only if it fails. */
function run(command: string, parameters: readonly string[], cwd: string): void {
  try {
    // On Windows the command is a batch file, which only a shell runs.
    execFileSync(join(process.cwd(), 'node_modules/.bin', command), parameters, {
      cwd,
      shell: process.platform === 'win32',
      encoding: 'utf8',
      stdio: 'pipe',
    });
  } catch (error) {
    process.stderr.write(`${command} failed in ${cwd}:\n${error instanceof Error ? error.message : error}\n`);
    process.exitCode = 1;
  }
}
