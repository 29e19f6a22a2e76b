#!/usr/bin/env node
/** Where the command line tool begins: looks at Node first, before anything is loaded that an older one cannot load. */

import { isTooOld, oldestNode } from './oldestNode.ts';

const { node } = process.versions;
if (isTooOld(node)) {
  process.stderr.write(`Dovetail needs Node ${oldestNode} or later, but this is Node ${node}.\n`);
  process.exitCode = 1;
} else {
  // `program.ts` and all that it starts with, in few files, by .ci/bundle.mjs.
  const program = new URL('../bundle/program.js', import.meta.url);
  // Not awaited: Node before 14.8 could not read a file that does so. What it throws ends the process all the same.
  import(program.href);
}
