/**
 * Says what is missing before a script tries anything else: a Node that is new enough, and the packages. It is run by any
 * Node, and before there are packages, so it imports nothing else.
 */

import { existsSync, readFileSync } from 'node:fs';

/** In the clone that this file is in: a command may be typed in any folder of it. */
const inClone = (path) => new URL(`../${path}`, import.meta.url);

/** What the packages ask for: a list such as `^20.19 || >=24`. */
const { engines } = JSON.parse(readFileSync(inClone('package.json'), 'utf8'));
const [major, minor] = process.versions.node.split('.').map(Number);
const isMet = engines.node.split(' || ').some((range) => {
  const [, sign, oldest, from = 0] = /^(\^|>=)(\d+)(?:\.(\d+))?$/.exec(range);
  if (major === Number(oldest)) return minor >= Number(from);
  return sign === '>=' && major > Number(oldest);
});

function findObstacle() {
  if (!isMet) {
    const versions = engines.node.replaceAll(/\^|>=/g, '').replaceAll(' || ', ', ');
    return `Dovetail needs Node ${versions} or later, but this is Node ${process.versions.node}.`;
  }
  if (!existsSync(inClone('node_modules/graphql'))) return 'Run npm ci first.';
  // A clone without development packages can run what was built before.
  if (existsSync(inClone('node_modules/.bin/tsc')) || existsSync(inClone('dist/cli/cli.js')))
    return undefined;
  return 'The production packages alone cannot build. Run npm ci --include=dev, or bring dist from a clone that has built it.';
}

const obstacle = findObstacle();
if (obstacle !== undefined) {
  process.stderr.write(`${obstacle}\n`);
  process.exitCode = 1;
}
