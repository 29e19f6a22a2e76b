#!/usr/bin/env node
/** The entry point of the command line tool. It checks the version of Node before it loads code that an older Node cannot load. */

import { isTooOld, oldestNode } from './oldestNode.ts';

const { node } = process.versions;
if (isTooOld(node)) {
  process.stderr.write(`Dovetail needs Node ${oldestNode} or later, but this is Node ${node}.\n`);
  process.exitCode = 1;
} else {
  // `.ci/bundle.mjs` has bundled `program.ts` and what it imports into a few files.
  const program = new URL('../bundle/program.js', import.meta.url);
  // Not awaited: Node before 14.8 cannot parse a top-level await. A rejection ends the process all the same.
  import(program.href);
}
