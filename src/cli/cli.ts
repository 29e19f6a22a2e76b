#!/usr/bin/env node
/** Where the command line tool begins: looks at Node first, before anything is loaded that an older one cannot load. */

/** That of `engines` in package.json. */
const oldest = '20.19';

const { node } = process.versions;
const [oldestMajor = 0, oldestMinor = 0] = oldest.split('.').map(Number);
const [major = 0, minor = 0] = node.split('.').map(Number);
if (major < oldestMajor || (major === oldestMajor && minor < oldestMinor)) {
  process.stderr.write(`Dovetail needs Node ${oldest} or later, but this is Node ${node}.\n`);
  process.exitCode = 1;
} else {
  // Not awaited: Node before 14.8 could not read a file that does so. What it throws ends the process all the same.
  import('./program.ts');
}
