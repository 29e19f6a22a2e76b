/** Builds the Relay example of docs/clients.md like a frontend: with Relay's compiler, the check of types, then Babel. */

import { execFileSync } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { transformFileSync } from '@babel/core';

/** The folder with the configuration of the page. */
const project = 'test/large/relay/generated/docs/relay';
run('test/large/node_modules/.bin/relay-compiler', ['relay.config.json'], project);
run('node_modules/.bin/tsc', ['--project', 'test/large/relay'], '.');
for (const name of readdirSync(join(project, 'src'))) {
  if (name.endsWith('.ts')) translate(join(project, 'src', name));
}

function run(command: string, parameters: readonly string[], cwd: string): void {
  execFileSync(resolve(command), parameters, { cwd, stdio: ['ignore', 'ignore', 'inherit'] });
}

/** Replaces each text tagged with `graphql` by the module that the compiler has generated for it. */
function translate(file: string): void {
  const { code } = transformFileSync(resolve(file), {
    babelrc: false,
    // The folder with the packages of its plugins.
    cwd: 'test/large',
    parserOpts: { plugins: ['typescript'] },
    plugins: [['relay', { eagerEsModules: true }]],
  });
  writeFileSync(file, code);
}
