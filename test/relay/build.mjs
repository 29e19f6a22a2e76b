/** Builds what docs/clients.md shows of Relay, as a frontend's build does: the compiler, the types, then Babel. */

import { execFileSync } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { transformFileSync } from '@babel/core';

const project = 'generated/docs/relay';
const run = (command, ...parameters) =>
  execFileSync(resolve(command), parameters, { cwd: project, stdio: ['ignore', 'ignore', 'inherit'] });

run('node_modules/.bin/relay-compiler', 'relay.config.json');
run('../../node_modules/.bin/tsc', '--project', resolve('.'));
for (const name of readdirSync(join(project, 'src'))) {
  if (!name.endsWith('.ts')) continue;
  const file = join(project, 'src', name);
  const { code } = transformFileSync(file, {
    babelrc: false,
    parserOpts: { plugins: ['typescript'] },
    plugins: [['relay', { eagerEsModules: true }]],
  });
  writeFileSync(file, code);
}
