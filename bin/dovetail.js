#!/usr/bin/env node
/**
 * The command `dovetail`, which loads the bundle that the build has made. It has to run on versions of Node that are too old
 * for the bundle, to say so.
 */

import { existsSync } from 'node:fs';

/** The oldest version of each release line, as in `engines` of package.json. Later lines all work. */
const oldestMinor = { 20: 19, 22: 13 };
const [major, minor] = process.versions.node.split('.').map(Number);
const program = new URL('../dist/gateway/program.js', import.meta.url);

if (major < 24 && !(minor >= oldestMinor[major])) {
  fail(`Dovetail needs Node 20.19, 22.13, 24 or later, but this is Node ${process.versions.node}.`);
} else if (!existsSync(program)) {
  fail('Dovetail is not built yet: run npm ci, which installs the packages and builds it.');
} else {
  import(program.href);
}

function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exitCode = 1;
}
