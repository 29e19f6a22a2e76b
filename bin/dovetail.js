#!/usr/bin/env node
/**
 * The command `dovetail`, which loads what was built. It is no part of the build itself: npm links a command once, when the
 * file is there, and `npx` would go on saying `not found` to whoever had typed it before the first build.
 *
 * It is written for Nodes that are too old as well, which are told so by what it loads.
 */

import { existsSync } from 'node:fs';

const ready = new URL('../.ci/ready.mjs', import.meta.url);
const built = new URL('../dist/cli/cli.js', import.meta.url);

/** In a clone, what every script of it looks at first; the package has no such file, and lacks nothing. */
const looked = existsSync(ready) ? import(ready.href) : Promise.resolve();

looked.then(() => {
  if (process.exitCode) return undefined;
  if (existsSync(built)) return import(built.href);
  process.stderr.write('Run npm run build first, or npm start, which builds as well.\n');
  process.exitCode = 1;
});
