/** Copies folders. A database has a thousand files, which `cp` copies in a seventh of the time that Node needs. */

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** Copies the content of a folder into another, which is created if necessary. */
export async function copyFolder(from: string, to: string): Promise<void> {
  await promisify(execFile)('cp', ['-R', `${from}/.`, to]);
}
