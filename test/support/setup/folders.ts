/** Which folders of tests lack packages of their own. */

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Those that have a package.json, tests, and no packages. */
export function foldersWithoutPackages(below: string): string[] {
  return readdirSync(below)
    .map((name) => join(below, name))
    .filter((folder) => existsSync(join(folder, 'package.json')) && !existsSync(join(folder, 'node_modules')))
    .filter((folder) => readdirSync(folder).some((name) => name.endsWith('.test.ts')));
}
