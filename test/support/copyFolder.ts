/** Copies folders. A database has a thousand files, which `cp` copies in a seventh of the time that Node needs. */

import { execFile, execFileSync } from 'node:child_process';
import { promisify } from 'node:util';

const argumentsOf = (from: string, to: string) => ['-R', `${from}/.`, to];

/** Copies the content of a folder into another, which is created if necessary. */
export async function copyFolder(from: string, to: string): Promise<void> {
  await promisify(execFile)('cp', argumentsOf(from, to));
}

/** Copies synchronously, so that nothing else happens meanwhile. */
export function copyFolderSync(from: string, to: string): void {
  execFileSync('cp', argumentsOf(from, to));
}
