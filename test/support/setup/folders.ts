/** Finds the folders of tests whose own packages are not installed. */

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** The folders with a package.json and tests, but without installed packages. */
export function foldersWithoutPackages(below: string): string[] {
  return readdirSync(below)
    .map((name) => join(below, name))
    .filter((folder) => existsSync(join(folder, 'package.json')) && !existsSync(join(folder, 'node_modules')))
    .filter((folder) => readdirSync(folder).some((name) => name.endsWith('.test.ts')));
}
